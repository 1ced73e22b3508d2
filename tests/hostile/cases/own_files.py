"""What a user keeps under the names that we use ourselves, or made of what we wrote."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hostile.box import Box
from hostile.case import Collection
from hostile.kit import QUICK

MINE = "of the user's\n"
LOCKS = ("lock", "lock.json", ".manylabel-lock", ".manylabel-lock.json")
# name → what puts something of the user's there
KINDS: dict[str, Callable[[Box, Path], object]] = {
    "a file": lambda box, path: path.write_text('{"mine": 1}\n'),
    "a link to a file": lambda box, path: path.symlink_to(box.root / "next-door" / "diary.txt"),
    "a link to nothing": lambda box, path: path.symlink_to(box.root / "next-door" / "nothing.txt"),
    "a pipe": lambda box, path: os.mkfifo(path),
    "a folder": lambda box, path: (path.mkdir(), (path / "kept.txt").write_text(MINE)),
}
# what a run writes, and a person may have put something else in its place
EDITED = {
    "results.json": '{"mine": 1}\n',
    "details.json": '{"mine": 1}\n',
    "report.html": "<!doctype html><title>mine</title>\n",
    "split.csv": "file_name,split\nmine.jpg,train\n",
    "bad_images.csv": "file_name,reason\nmine.jpg,blurred\n",
    "bundle/README.md": "# my model card\n",
}


def groups() -> Iterator[Collection]:
    yield _runs()
    yield _tables()
    yield _fetched()


def _train(box: Box, several: bool) -> list[str]:
    if several:
        box.get("small.yaml")
        return ["train", "--recipe", "small.yaml"]
    box.get("photos")
    return ["train", "photos", *QUICK]


def _runs() -> Collection:
    made = Collection("names that a run uses")

    def lock(name: str, kind: str, several: bool) -> None:
        def work(box: Box) -> None:
            words = _train(box, several)
            (box / "project").mkdir()
            KINDS[kind](box, box / "project" / name)
            keeps = [f"project/{name}", f"project/{name}/**"]
            box.run(*words, "--out", "project", codes=[0, 2], writes=["project/**"], keeps=keeps)

        made.add(f"train{' of tasks' * several}: {name} is {kind}", work)

    for name in LOCKS:
        for kind in KINDS:
            lock(name, kind, False)
        lock(name, "a file", True)

    def mark(kind: str) -> None:
        def work(box: Box) -> None:
            words = _train(box, False)
            box.get("run", "project")
            (box / "project" / "run.json").unlink()
            KINDS[kind](box, box / "project" / "run.json")
            for more in ([], ["--overwrite"]):
                box.run(*words, "--out", "project", *more, codes=[2])
            box.run("train", "--resume", "--out", "project", codes=[2])

        made.add(f"run.json is {kind}", work)

    for kind in KINDS:
        mark(kind)

    @made.case("run.json is a link to /dev/zero")
    def _(box: Box) -> None:
        words = _train(box, False)
        (box / "project").mkdir()
        os.symlink("/dev/zero", box / "project" / "run.json")
        box.run(*words, "--out", "project", "--overwrite", codes=[2], memory=1 << 30)

    def edited(name: str, how: str, several: bool) -> None:
        def work(box: Box) -> None:
            run = "half-tasks" if several else "half"
            words = ["train", "--resume"]
            if how == "--overwrite":
                run, words = ("tasks" if several else "run"), [*_train(box, several), "--overwrite"]
            box.get(run, "mine")
            box.write(f"mine/{name}", EDITED[name])
            box.run(*words, "--out", "mine", codes=[2])

        made.add(f"{how}{' of tasks' * several}: {name} is another's", work)

    for several in (False, True):
        for name in EDITED:
            if several and name in ("details.json", "split.csv", "bad_images.csv"):
                continue
            for how in ("--resume", "--overwrite"):
                if not (how == "--resume" and name.startswith("bundle/")):  # it has none yet
                    edited(name, how, several)

    @made.case("--resume with settings in a folder that is no run")
    def _(box: Box) -> None:
        box.get("half", "whole")
        box.write("project/config.yaml", (box / "whole" / "config.yaml").read_bytes())
        box.write("project/results.json", MINE)
        box.run("train", "--resume", "--out", "project", codes=[2])

    beside = (
        "checkpoints/step-notes.json",
        "checkpoints/step-1.safetensors",
        "routing/patches-holiday.png",
        "routing/step-one.npz",
        "figures/01.png",
        "bundle/notes.json",
    )

    def keeps(several: bool) -> None:
        def work(box: Box) -> None:
            words = _train(box, several)
            box.get("tasks" if several else "run", "mine")
            for name in beside:
                box.write(f"mine/{name}", MINE)
            box.run(
                *words, "--out", "mine", "--overwrite", writes=["mine/**"], keeps=[f"mine/{name}" for name in beside]
            )

        made.add(f"--overwrite{' of tasks' * several}: files that look like those of a run", work)

    for several in (False, True):
        keeps(several)
    return made


def _tables() -> Collection:
    """Tables and label files that we read, that a person made, or that a person changed."""
    made = Collection("tables of the user's")
    split = ["data", "split", "photos", "--no-duplicates", "--out", "parts.csv"]
    convert = ["data", "convert", "photos", "new.csv", "--to", "csv"]
    predict = ["predict", "run", "photo.jpg", "--csv", "scores.csv"]
    tasks = ["predict", "run", "photo.jpg", "--label-studio", "tasks.json"]
    commands: dict[str, tuple[list[str], str, str]] = {
        "data split": (split, "parts.csv", "file_name,split\nphoto000.jpg,train\n"),
        "data split --folds": ([*split, "--folds", "3"], "parts.csv", "file_name,fold\nphoto000.jpg,1\n"),
        "data convert": (convert, "new.csv", "file_name,labels\nphoto000.jpg,red\n"),
        "data convert coco": (
            ["data", "convert", "photos", "new.json", "--to", "coco"],
            "new.json",
            '{"info": {"description": "written by manylabel"}, "images": [], "annotations": [], "categories": []}\n',
        ),
        "data convert imagefolder": (
            ["data", "convert", "photos", "hub", "--to", "imagefolder", "--images", "leave"],
            "hub/metadata.jsonl",
            '{"file_name": "photo000.jpg", "labels": ["red"]}\n',
        ),
        "predict --csv": (predict, "scores.csv", "file_name,labels,scores,error\nphoto000.jpg,red,0.9,\n"),
        "predict --label-studio": (
            tasks,
            "tasks.json",
            '[\n{"data": {}, "annotations": [{}], "predictions": [{"model_version": "manylabel"}]}\n]\n',
        ),
    }

    def prepare(box: Box) -> None:
        for name in ("photos", "run", "photo.jpg"):
            box.get(name)

    def hand_made(command: str) -> None:
        words, name, text = commands[command]

        def work(box: Box) -> None:
            prepare(box)
            box.write(name, text)
            for more in ([], ["--overwrite"]):
                box.run(*words, *more, codes=[2])

        made.add(f"{command}: a file that begins like ours", work)

    def changed(command: str) -> None:
        words, name, _ = commands[command]

        def work(box: Box) -> None:
            prepare(box)
            box.run(*words, writes=[name, "hub", "hub/*", "label_config.xml"])
            with open(box / name, "ab") as file:
                file.write(b"\n")
            box.run(*words, "--overwrite", codes=[2])

        made.add(f"{command}: a file of ours that the user changed", work)

    for command in commands:
        hand_made(command)
        changed(command)

    def over(what: str, prepared: Callable[[Box], None], *words: str) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            prepared(box)
            for more in ([], ["--overwrite"]):
                box.run("data", *words, *more, codes=[2])

        made.add(what, work)

    def own(box: Box) -> None:
        """Data whose files are ours: they may be replaced, were they not read."""
        for part in ("train", "val", "test"):
            words = ("data", "convert", "photos", f"d/{part}.csv", "--to", "csv", "--images", "copy", "--split", part)
            box.run(*words, writes=["d/**"])

    def whole(box: Box) -> None:
        box.run("data", "convert", "photos", "d", "--to", "csv", "--images", "copy", writes=["d/**"])

    def parts(box: Box) -> None:
        box.run(*split, writes=["parts.csv"])

    to = ("--to", "csv", "--split", "train")
    over("convert a file into its folder", whole, "convert", "d/labels.csv", "d", *to)
    over("convert a folder over its file", whole, "convert", "d", "d/labels.csv", *to)
    over("convert over one of several files", own, "convert", "d", "d/val.csv", *to)
    over("convert over a file by a link", lambda box: (whole(box), os.symlink("d", box / "same"))[0], "convert",
         "d/labels.csv", "same/labels.csv", *to)  # fmt: skip
    over(
        "convert over the split file",
        parts,
        "convert",
        "photos",
        "parts.csv",
        "--set",
        "data.split_file=parts.csv",
        *to,
    )
    over(
        "convert over the list of labels",
        parts,
        "convert",
        "photos",
        "parts.csv",
        "--set",
        "data.labels=parts.csv",
        *to,
    )
    over("split over the split file", parts, "split", "photos", "--out", "parts.csv", "--no-duplicates", "--set",
         "data.split_file=parts.csv")  # fmt: skip
    return made


def _serve(folder: Path) -> str:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def _toy() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, size in (("toy/labels.csv", 9), ("toy/a", 9999)):
            facts = tarfile.TarInfo(name)
            facts.size = size
            tar.addfile(facts, io.BytesIO(bytes(size)))
    return packed.getvalue()


def _fetched() -> Collection:
    """What lies in the folder of a fetch where its own files will be: nothing is written through it."""
    from manylabel.data.fetch.manifest import ARCHIVES, BUSY, LOCK, MANIFEST, WORKSHOP

    made = Collection("planted in the folder of a fetch")

    def planted(name: str, kind: str) -> None:
        def work(box: Box) -> None:
            content = _toy()
            (box.root / "tmp" / "toy.tar").write_bytes(content)
            place = box / "data" / name
            place.parent.mkdir(parents=True)
            KINDS[kind](box, place)

            def fetch() -> str:
                import manylabel as ml
                from manylabel import console
                from manylabel.data.fetch import Archive, DataSet, Patience
                from manylabel.data.fetch import fetch as bring

                console.QUIET = True
                sums = f"sha256:{hashlib.sha256(content).hexdigest()}"
                archive = Archive("https://official.example/toy.tar", len(content), len(content), checksum=sums)
                toy = DataSet("toy", "a toy", "free", "https://official.example", (archive,), ((None, "toy/a"),))
                more: dict[str, Any] = {"catalogue": {"toy": toy}, "patience": Patience(tries=1)}
                try:
                    bring("toy", "data", mirror=_serve(box.root / "tmp"), **more)
                except (ml.ManylabelError, OSError) as error:
                    return str(error)
                return "fetched"

            theirs = [f"data/{name}/kept.txt", f"data/{name}.aside-*/**"] if kind == "a folder" else []
            found = box.python(fetch, writes=["data/**"], codes=[0])
            box.expect(found, "refused without a reason")
            kept = [*(box / "data").rglob("kept.txt")]
            box.expect(not theirs or any(path.read_text() == MINE for path in kept), "what was in the folder is lost")

        made.add(f"{name} is {kind}", work)

    for name in (BUSY, MANIFEST, LOCK, WORKSHOP, f"{ARCHIVES}/toy.tar.part", f"{ARCHIVES}/toy.tar.part.json"):
        for kind in KINDS:
            planted(name, kind)
    return made
