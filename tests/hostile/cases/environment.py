"""Terminals, streams, users and disks that are not as they should be."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

from hostile.box import Box, Fate, Limits
from hostile.case import Collection
from hostile.kit import QUICK

COMMANDS: dict[str, list[str]] = {
    "predict": ["predict", "run", "photo.jpg"],
    "predict --json": ["predict", "run", "photo.jpg", "--json"],
    "evaluate": ["evaluate", "run", "--split", "test"],
    "data check": ["data", "check", "photos"],
    "train": ["train", "photos", *QUICK, "--out", "new"],
    "compare": ["compare", "run", "other", "--resamples", "100", "--out", "compared"],
    "heads": ["heads"],
    "--help": ["--help"],
    "cache list": ["cache", "list"],
    "hard": ["hard", "run", "--resamples", "0"],
    "evaluate tasks": ["evaluate", "tasks"],
    "bench cost": [
        "bench",
        "cost",
        "--backbone",
        "test_efficientnet",
        "--head",
        "linear",
        "--labels",
        "4",
        "--image-size",
        "64",
    ],
}
WRITES = ["new/**", "compared/**"]


def groups() -> Iterator[Collection]:
    yield _streams()
    yield _places()
    yield _disks()


def _prepare(box: Box) -> None:
    for name in ("run", "other", "tasks", "photos", "photo.jpg"):
        box.get(name)


def _streams() -> Collection:
    made = Collection("terminals and streams")

    def env(name: str, command: str, values: dict[str, str | None], label: str = "", fresh: bool = True) -> None:
        def work(box: Box) -> None:
            _prepare(box)
            if label:
                path = box / "photos" / "labels.csv"
                path.write_text(path.read_text().replace("red", label), encoding="utf-8")
            said = box.run(*COMMANDS[command], env=values, fresh=fresh, writes=WRITES)
            box.expect(said.stdout.strip(), "nothing is said")

        made.add(f"{name}: {command}", work)

    for columns in ("0", "1", "-5", "x", "", "1000000"):
        for command in ("evaluate", "data check", "cache list", "compare", "bench cost"):
            env(f"COLUMNS={columns}", command, {"COLUMNS": columns, "LINES": columns})
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LANG": "C"}
    for command in (
        "train",
        "evaluate",
        "data check",
        "predict",
        "compare",
        "--help",
        "hard",
        "evaluate tasks",
        "heads",
    ):
        env("ASCII output", command, dict(ascii_only))
    env("ASCII output, other labels", "train", dict(ascii_only), "röt-赤")
    env("ASCII output, other labels", "data check", dict(ascii_only), "röt-赤")
    for values in (
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"LANG": None},
        {"LC_ALL": "xx_YY.nothing"},
    ):
        for command in ("train", "predict"):
            env(" ".join(f"{key}={value}" for key, value in values.items()), command, values, "röt")
    for values in (
        {"TERM": "dumb"},
        {"TERM": ""},
        {"TERM": None},
        {"FORCE_COLOR": "1", "NO_COLOR": None, "TERM": "x"},
        {"PYTHONOPTIMIZE": "2"},
        {"PYTHONWARNINGS": "default"},
        {"PYTHONHASHSEED": "7"},
        {"TZ": "nowhere/else"},
        {"OMP_NUM_THREADS": "x"},
        {"PYTHONUNBUFFERED": "1"},
    ):
        if "FORCE_COLOR" not in values:
            env(" ".join(f"{key}={value}" for key, value in values.items()), "evaluate", values)

    def stream(name: str, command: str, manners: dict[str, Any], codes: tuple[int, ...]) -> None:
        def work(box: Box) -> None:
            _prepare(box)
            said = box.run(*COMMANDS[command], fresh=True, manners=manners, codes=codes, writes=WRITES)
            if command == "train" and said.code == 0:
                box.run("predict", "new", "photo.jpg")

        made.add(f"{name}: {command}", work)

    def full(number: int) -> Callable[[], None]:
        return lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), number)

    def broken(number: int) -> Callable[[], None]:
        def work() -> None:
            reader, writer = os.pipe()
            os.close(reader)
            os.dup2(writer, number)

        return work

    for command in ("predict", "predict --json", "evaluate", "train", "data check", "--help"):
        stream("closed standard output", command, {"closed": (1,)}, (0, 1, 2, 120))
        stream("closed standard error", command, {"closed": (2,)}, (0,))
        stream("closed standard input", command, {"closed": (0,)}, (0,))
        stream("all closed", command, {"closed": (0, 1, 2)}, (0, 1, 2, 120))
        stream("a reader that went away", command, {"before": broken(1)}, (0, 120, 141))
        stream("errors to a reader that went away", command, {"before": broken(2)}, (0, 141))
        if command != "train":
            stream("a full device for standard output", command, {"before": full(1)}, (1, 2, 120))
        stream("a full device for standard error", command, {"before": full(2)}, (0, 1, 2))
    return made


def _places() -> Collection:
    made = Collection("users and places")

    def env(name: str, command: str, values: dict[str, str | None], **more: Any) -> None:
        def work(box: Box) -> None:
            _prepare(box)
            box.run(*COMMANDS[command], env=values, writes=[*WRITES, "manylabel/**"], **more)

        made.add(f"{name}: {command}", work)

    for command in ("train", "predict", "data check"):
        env("no HOME", command, {"HOME": None})
        env("HOME is nothing", command, {"HOME": "/nonexistent"})
        env("HOME is a file", command, {"HOME": "/etc/passwd"})
        env("an empty HOME", command, {"HOME": ""})
        env("no HOME, no cache", command, {"HOME": None, "XDG_CACHE_HOME": "/proc/nothing"}, codes=[0, 2])
        env("TMPDIR is nothing", command, {"TMPDIR": "/nonexistent"})
        env("no environment", command, {"PATH": None, "LANG": None, "TMPDIR": None, "COLUMNS": None})
        env("umask 077", command, {}, manners={"umask": 0o077})
        env("umask 000", command, {}, manners={"umask": 0})
        env("umask 777", command, {}, manners={"umask": 0o777, "unprivileged": True}, codes=[0, 2])

    @made.case("umask 077: nothing of a run can be read by others")
    def _(box: Box) -> None:
        box.get("photos")
        box.run("train", "photos", *QUICK, "--out", "new", writes=["new/**"], manners={"umask": 0o077}, fresh=True)
        for path in (box / "new").rglob("*"):
            box.expect(not path.stat().st_mode & 0o077, f"{path.name} can be read by others: {path.stat().st_mode:o}")

    def gone(command: str) -> None:
        def work(box: Box) -> None:
            _prepare(box)
            (box / "here").mkdir()
            words = [
                str(box / word) if (box.kit.folder / word).exists() or word in ("new", "compared") else word
                for word in COMMANDS[command]
            ]
            manners = {"before": lambda: (os.chdir(box / "here"), os.rmdir(box / "here"))}
            box.run(*words, manners=manners, codes=[0, 2], writes=[*WRITES, "here"])

        made.add(f"the folder one is in was deleted: {command}", work)

    for command in ("predict", "train", "evaluate", "data check", "--help", "compare"):
        gone(command)

    def moved(name: str, work: Callable[[Box], Any]) -> None:
        made.add(name, work)

    def photos_moved(box: Box) -> None:
        box.get("photos")
        box.run("train", "photos", *QUICK, "--out", "new", writes=["new/**"])
        shutil.move(box / "photos", box / "elsewhere")
        box.run("evaluate", "new", codes=[2])
        box.run("evaluate", "new", "--data", "elsewhere", "--split", "val")

    def run_moved(box: Box) -> None:
        box.get("photos")
        box.get("photo.jpg")
        box.run("train", "photos", *QUICK, "--out", "new", writes=["new/**"])
        shutil.move(box / "new", box / "renamed")
        box.run("predict", "renamed", "photo.jpg")
        box.run("evaluate", "renamed", "--split", "val")
        box.run("report", "renamed", writes=["renamed/report.html"])

    def replaced(box: Box) -> None:
        box.get("photos")
        box.run("train", "photos", *QUICK, "--out", "new", writes=["new/**"])
        shutil.rmtree(box / "photos")
        box.write("photos", "a file now\n")
        box.run("evaluate", "new", codes=[2])

    def moved_while_stopped(box: Box) -> None:
        box.get("half")
        shutil.move(box / "half", box / "renamed")
        box.run("train", "--resume", "--out", "renamed", writes=["renamed/**"])

    moved("the photos were moved before evaluate", photos_moved)
    moved("the run was moved before evaluate", run_moved)
    moved("the photos are a file now", replaced)
    moved("a stopped run was renamed and resumed", moved_while_stopped)

    def read_only(command: str, *words: str, writes: tuple[str, ...] = ()) -> None:
        def work(box: Box) -> None:
            _prepare(box)
            for folder in (box / "run", box / "photos"):
                for path in [*folder.rglob("*"), folder]:
                    path.chmod(0o555 if path.is_dir() else 0o444)
            box.run(*words, writes=writes, manners={"unprivileged": True})
            for folder in (box / "run", box / "photos"):
                for path in [folder, *folder.rglob("*")]:
                    path.chmod(0o755 if path.is_dir() else 0o644)

        made.add(f"run and photos are read-only: {command}", work)

    read_only("predict", "predict", "run", "photo.jpg")
    read_only("evaluate", "evaluate", "run")
    read_only("explain", "explain", "run", "photo.jpg", writes=("explanations/**",))
    read_only("data check", "data", "check", "photos")
    read_only("train", "train", "photos", *QUICK, "--out", "new", writes=("new/**",))
    read_only("report elsewhere", "report", "run", "--out", "page.html", writes=("page.html",))

    def forked(name: str, threads: str, several: bool) -> None:
        def work(box: Box) -> None:
            """A program that predicts, forks, and predicts again in the child: multiprocessing does so by default."""
            box.get("tasks" if several else "run")
            box.get("photo.jpg")
            load = "ml.Predictor.load('tasks')" if several else "ml.Predictor.load('run')"
            more = ", 'labels'" if several else ""
            box.write(
                "program.py",
                f"import multiprocessing, manylabel as ml\n"
                f"predictor = {load}\n"
                f"def work(name): return len(predictor.predict(name{more})[0].labels)\n"
                f"if __name__ == '__main__':\n"
                f"    before = work('photo.jpg')\n"
                f"    with multiprocessing.get_context('fork').Pool(2) as pool:\n"
                f"        print(before, pool.map(work, ['photo.jpg'] * 4))\n",
            )
            said = box.run(
                program=[sys.executable, "program.py"], env={"OMP_NUM_THREADS": threads}, limits=Limits(sleeping=15)
            )
            box.expect("[" in said.out, "nothing is said")

        made.add(f"predict in a forked child, {name}{' (tasks)' * several}", work)

    for several in (False, True):
        forked("1 thread", "1", several)
        forked("2 threads", "2", several)
        forked("4 threads", "4", several)

    @made.case("predict in many threads")
    def _(box: Box) -> None:
        box.get("run")
        box.get("photo.jpg")

        def work() -> Any:
            from concurrent.futures import ThreadPoolExecutor

            import manylabel as ml

            predictor = ml.Predictor.load("run")
            with ThreadPoolExecutor(4) as pool:
                found = list(pool.map(lambda _: predictor.predict("photo.jpg")[0].labels, range(16)))
            return all(one == found[0] for one in found)

        box.expect(box.python(work), "threads get different answers")

    @made.case("data fetch without a network can be tried again")
    def _(box: Box) -> None:
        """It leaves its mark, by which it knows the folder for its own; a third try asks for something else."""
        for name in ("voc2007", "voc2007", "voc2012"):
            words = ["data", "fetch", name, "--out", "voc", "--mirror", "http://127.0.0.1:9/"]
            box.run(*words, codes=[2], says="connect|reach|refused", writes=["voc", "voc/.manylabel-fetch.json"])

    return made


def _disks() -> Collection:
    """A disk that is full: one line of cause, no traceback, nothing half-written."""
    made = Collection("full disks")
    plans: dict[str, tuple[list[str], list[str]]] = {
        "train": (["train", "photos", *QUICK, "--out", "new"], ["new/**"]),
        "train without cache": (["train", "photos", *QUICK, "--set", "train.cache=off", "--out", "new"], ["new/**"]),
        "train of tasks": (["train", "--recipe", "small.yaml", "--out", "new"], ["new/**"]),
        "evaluate": (["evaluate", "run", "--json", "e.json", "--report", "e.html"], ["e.json", "e.html"]),
        "predict --csv": (["predict", "run", "photos/images", "--csv", "out.csv"], ["out.csv"]),
        "predict --label-studio": (
            ["predict", "run", "photos/images", "--label-studio", "out.json"],
            ["out.json", "label_config.xml"],
        ),
        "explain": (["explain", "run", "photos/images"], ["explanations/**"]),
        "data check": (["data", "check", "photos", "--json", "c.json", "--html", "c.html"], ["c.json", "c.html"]),
        "data split": (["data", "split", "photos", "--out", "s.csv"], ["s.csv"]),
        "data convert csv": (["data", "convert", "photos", "c.csv", "--to", "csv"], ["c.csv"]),
        "data convert coco": (["data", "convert", "photos", "c.json", "--to", "coco"], ["c.json"]),
        "data convert imagefolder": (
            ["data", "convert", "photos", "c", "--to", "imagefolder", "--images", "copy"],
            ["c/**"],
        ),
        "compare": (["compare", "run", "other", "--resamples", "100"], ["comparison/**"]),
        "hard": (["hard", "run", "--resamples", "0", "--out", "h"], ["h/**"]),
        "report": (["report", "run", "--out", "r.html"], ["r.html"]),
        "predict --overlay": (["predict", "tasks", "photos/images", "--task", "objects", "--overlay", "o"], ["o/**"]),
        "train --resume": (["train", "--resume", "--out", "half"], ["half/**"]),
    }
    for name, (words, writes) in plans.items():
        for size in (0, 300, 5_000, 60_000, 600_000):

            def work(box: Box, words: list[str] = words, writes: list[str] = writes, size: int = size) -> None:
                _prepare(box)
                for other in ("small.yaml", "half"):
                    if other in words:
                        box.get(other)
                before = {path.name: path.read_bytes() for path in (box / "run").rglob("*") if path.is_file()}
                limits = Limits(file_size=size)
                said = box.run(*words, codes=[0, 2], writes=writes, limits=limits, cpu=60)
                box.expect(
                    before == {p.name: p.read_bytes() for p in (box / "run").rglob("*") if p.is_file()},
                    "the run changed",
                )
                if said.code == 2:
                    box.expect(
                        "space" in said.errors
                        or "large" in said.errors
                        or "could not" in said.errors
                        or "cannot" in said.errors
                        or "no usable temporary directory" in said.errors,
                        f"no cause is named: {said.last_words()}",
                    )
                    checksums = box / "new" / "bundle" / "checksums.json"
                    if checksums.exists():
                        box.run("predict", "new", "photo.jpg", codes=[0, 2])
                if "train" in words[0] and said.code == 2 and (box / "new" / "config.yaml").exists():
                    box.run("train", "--resume", "--out", "new", writes=["new/**"], codes=[0, 2], cpu=60)

            made.add(f"{name}: files of {size:,} bytes at most", work)

    def small_disk(name: str, words: list[str], size: str) -> None:
        def work(box: Box) -> None:
            _prepare(box)
            (box / "disk").mkdir()
            if os.getuid() or os.system(f"mount -t tmpfs -o size={size} tmpfs '{box / 'disk'}' 2>/dev/null"):
                return  # only root makes disks
            try:
                said = box.run(*words, codes=[0, 2], writes=["disk/**"], cpu=60)
                if said.code == 2 and not said.errors:
                    raise Fate("bad output", "refused without a reason")
                box.expect(not list((box / "disk").rglob("*.partial")), "a half-written file was left")
            finally:
                os.system(f"umount -l '{box / 'disk'}'")

        made.add(f"{name} on a disk of {size}", work)

    for size in ("16k", "200k", "600k", "900k", "1200k"):
        small_disk("train", ["train", "photos", *QUICK, "--set", "train.cache=off", "--out", "disk/new"], size)
    small_disk(
        "data convert imagefolder",
        ["data", "convert", "photos", "disk/c", "--to", "imagefolder", "--images", "copy"],
        "64k",
    )
    small_disk("predict --csv", ["predict", "run", "photos/images", "--csv", "disk/out.csv"], "4k")
    small_disk("explain", ["explain", "run", "photos/images", "--out", "disk/e"], "64k")
    return made
