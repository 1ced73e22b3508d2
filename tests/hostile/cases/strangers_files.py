"""Runs, results, scores and recipes that a stranger wrote."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hostile.box import Box
from hostile.case import Collection
from hostile.kit import LONG, QUICK, weights_of
from hostile.strange import BOMB, deep_json, mutated, with_a_strange_value

MB = 1 << 20
MOST = 600 * MB


def groups() -> Iterator[Collection]:
    yield _results()
    yield _scores()
    yield _recipes()
    yield _checkpoints()


JSON_TEXTS: dict[str, bytes | str] = {
    "empty": "",
    "a list": "[]",
    "a number": "7",
    "NUL bytes": b"\0" * 50,
    "no UTF-8": b'{"a": "\xff"}',
    "lists nested deep": deep_json(),
    "objects nested deep": deep_json(kind="{"),
    "cut off": '{"schema": 1, "labels": [',
    "5,000 digits": '{"schema": ' + "9" * 5000 + "}",
    "another program's": '{"name": "left-pad", "version": "1.0.0"}',
}
READERS = {
    "report": ["report", "{run}", "--out", "page.html"],
    "compare": ["compare", "{run}", "other", "--resamples", "100", "--out", "compared"],
    "hard": ["hard", "{run}", "--resamples", "0", "--json"],
}
WRITES = ["page.html", "figures/**", "compared/**"]


def _read_with(box: Box, command: str, codes: list[int], run: str = "run") -> None:
    if command == "compare":
        box.get("other" if run == "run" else "tasks", "other")
    words = [word.format(run=run) for word in READERS[command]]
    said = box.run(*words, codes=codes, writes=WRITES, memory=MOST, cpu=20)
    if said.code == 0 and command == "hard":
        said.json()
    for name in ("page.html", "compared/comparison.html"):
        if (box / name).is_file():
            page = (box / name).read_text(encoding="utf-8")
            box.expect("<script>alert" not in page and "<img src=x" not in page, f"{name} runs what a stranger wrote")
    if (box / "compared" / "comparison.json").is_file():
        box.json_file("compared/comparison.json")


def _results() -> Collection:
    made = Collection("strangers' results")

    def text(name: str, command: str, file: str, content: bytes | str, codes: list[int]) -> None:
        def work(box: Box) -> None:
            box.get("run")
            box.write(f"run/{file}", content)
            _read_with(box, command, codes)

        made.add(f"{file}: {name}: {command}", work)

    for name, content in JSON_TEXTS.items():
        for command in READERS:
            text(name, command, "results.json", content, [2])
        text(name, "report", "details.json", content, [0, 2])
        text(name, "compare", "metrics.jsonl", content, [0, 2])

    def of_a_task(name: str, content: bytes | str) -> None:
        def work(box: Box) -> None:
            box.get("tasks")
            box.write("tasks/tasks/labels/results.json", content)
            words = ("hard", "tasks", "--task", "labels", "--resamples", "0", "--json")
            box.run(*words, codes=[2], memory=MOST, cpu=20)

        made.add(f"tasks/labels/results.json: {name}: hard --task", work)

    for name, content in JSON_TEXTS.items():
        of_a_task(name, content)
    for kind in ("pipe", "folder", "endless"):
        for file in ("results.json", "details.json", "metrics.jsonl"):

            def special(box: Box, kind: str = kind, file: str = file) -> None:
                box.get("run")
                (box / "run" / file).unlink()
                _special(box / "run" / file, kind)
                _read_with(box, "compare" if file == "metrics.jsonl" else "report", [0, 2] if file[0] != "r" else [2])

            made.add(f"{file}: a {kind}", special)

    evil = '<script>alert(1)</script><img src=x onerror="alert(2)">'
    changes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "a title that is a script": lambda v: v.update(title=evil),
        "labels that are scripts": lambda v: [label.update(name=f"{evil}{i}") for i, label in enumerate(v["labels"])],
        "a data set that is a script": lambda v: v["data"].update(name=evil),
        "notes that are scripts": lambda v: v.update(notes=[evil]),
        "mAP of NaN": lambda v: v.update(mAP=float("nan")),
        "mAP of 10^400": lambda v: v.update(mAP=10**400),
        "mAP of text": lambda v: v.update(mAP="best"),
        "an AP of infinity": lambda v: v["labels"][0].update(ap=float("inf")),
        "labels twice": lambda v: v.update(labels=v["labels"] * 2),
        "no labels": lambda v: v.update(labels=[]),
        "labels that are text": lambda v: v.update(labels="red"),
        "another schema": lambda v: v.update(schema=99),
        "escapes in labels": lambda v: v["labels"][0].update(name="\x1b[2J\x1b]0;mine\x07red"),
        "C1 characters in the title": lambda v: v.update(title="\x9b2Jtitle"),
        "a label of a megabyte": lambda v: v["labels"][0].update(name="x" * MB),
    }
    for name, change in changes.items():
        for command in READERS:

            def changed(box: Box, change: Callable[[dict[str, Any]], Any] = change, command: str = command) -> None:
                box.get("run")
                values = json.loads((box / "run" / "results.json").read_text())
                change(values)
                box.write("run/results.json", json.dumps(values))
                _read_with(box, command, [0, 2])

            made.add(f"results.json: {name}: {command}", changed)

    for number in range(45):
        run = "tasks" if number % 3 == 2 else "run"
        file = ("results.json", "details.json", "results.json")[number % 3]

        def mutate(box: Box, run: str = run, file: str = file, number: int = number) -> None:
            box.get(run)
            path = box / run / file
            if number % 2:
                path.write_text(json.dumps(with_a_strange_value(json.loads(path.read_text()), box.dice)))
            else:
                path.write_bytes(mutated(path.read_bytes(), box.dice))
            _read_with(box, "compare" if number % 5 == 0 else "report", [0, 2], run)

        made.add(f"mutated {number:02d} {run} {file}", mutate)
    return made


def _special(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "endless":
        os.symlink("/dev/zero", path)


def _npz(path: Path, **arrays: np.ndarray) -> None:
    np.savez(path, **arrays)


def _bomb(name: str, header: str, size: int) -> bytes:
    """An npz whose array `name` stands for so many zeros."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file, file.open(f"{name}.npy", "w") as entry:
        text = header.encode().ljust(118) + b"\n"
        entry.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
        block = bytes(MB)
        for _ in range(size // MB):
            entry.write(block)
    return buffer.getvalue()


def _scores() -> Collection:
    made = Collection("strangers' scores")

    def arrays(box: Box) -> dict[str, np.ndarray]:
        with np.load(box / "run" / "scores.npz") as found:
            return {name: found[name] for name in found}

    def changed(name: str, change: Callable[[dict[str, np.ndarray]], Any], codes: tuple[int, ...] = (2,)) -> None:
        for command in ("compare", "hard"):

            def work(box: Box, command: str = command) -> None:
                box.get("run")
                found = arrays(box)
                change(found)
                _npz(box / "run" / "scores.npz", **found)
                _read_with(box, command, list(codes))

            made.add(f"{name}: {command}", work)

    nan, inf = np.float32("nan"), np.float32("inf")
    changed("NaN", lambda v: v["scores"].__setitem__((0, 0), nan))
    changed("infinity", lambda v: v["scores"].__setitem__((0, 0), inf))
    changed("scores of 7", lambda v: v["scores"].__setitem__((0, 0), 7))
    changed("labels of 100", lambda v: v["matrix"].__setitem__((0, 0), 100))
    changed("objects", lambda v: v.update(keys=v["keys"].astype(object)))
    changed("no scores", lambda v: v.pop("scores"))
    changed("too few keys", lambda v: v.update(keys=v["keys"][:-1]))
    changed("keys twice", lambda v: v["keys"].__setitem__(1, v["keys"][0]), (0, 2))
    changed("keys that lead elsewhere", lambda v: v["keys"].__setitem__(0, "../../x.jpg"), (0, 2))
    changed("keys that are numbers", lambda v: v.update(keys=np.arange(len(v["keys"]))), (0, 2))
    changed("another number of labels", lambda v: v.update(scores=v["scores"][:, :-1], matrix=v["matrix"][:, :-1]))
    changed("three dimensions", lambda v: v.update(scores=v["scores"][None], matrix=v["matrix"][None]))
    changed("complex numbers", lambda v: v.update(scores=v["scores"].astype(complex)))
    changed("text for scores", lambda v: v.update(scores=v["scores"].astype(str)))
    changed("no images", lambda v: v.update({n: a[:0] for n, a in v.items()}))

    def file(name: str, content: bytes | Callable[[], bytes]) -> None:
        for command in ("compare", "hard"):

            def work(box: Box, command: str = command) -> None:
                box.get("run")
                box.write("run/scores.npz", content() if callable(content) else content)
                _read_with(box, command, [2])

            made.add(f"{name}: {command}", work)

    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }"
    file("empty", b"")
    file("noise", bytes(range(256)) * 20)
    file("no archive", b"PK\3\4" + bytes(300))
    file("zeros that stand for 2 GB", lambda: _bomb("scores", head % "25000, 20000", 2000 * MB))
    file("a shape of terabytes", lambda: _bomb("scores", head % "1000000, 1000000", MB))
    file("a negative shape", lambda: _bomb("scores", head % "-1, 5", MB))
    file("a header that is code", lambda: _bomb("scores", "__import__('os').system('touch hacked')", MB))
    file("a header nested deep", lambda: _bomb("scores", "(" * 5000, MB))
    file(
        "names of a gigabyte",
        lambda: _bomb("keys", "{'descr': '<U300000000', 'fortran_order': False, 'shape': (1,), }", MB),
    )
    for kind in ("pipe", "folder", "endless"):

        def special(box: Box, kind: str = kind) -> None:
            box.get("run")
            (box / "run" / "scores.npz").unlink()
            _special(box / "run" / "scores.npz", kind)
            _read_with(box, "compare", [0, 2])

        made.add(f"a {kind}", special)
    return made


def _recipes() -> Collection:
    made = Collection("strangers' recipes and settings")
    texts: dict[str, bytes | str] = {
        "a bomb of aliases": BOMB,
        "a bomb below a section": "train:\n" + "".join(f"  {line}\n" for line in BOMB.splitlines()),
        "a bomb for a text": "data: {path: photos}\ntext: {name: file, path: *h}\n".join(["", BOMB]),
        "an alias of itself": "a: &a [*a]\n",
        "a mapping in itself": "data: &d\n  path: *d\n",
        "flow nested deep": "a: " + "[" * 20_000 + "]" * 20_000,
        "mappings nested deep": "a: " + "{b: " * 20_000 + "}" * 20_000,
        "blocks nested deep": "".join(" " * i + "a:\n" for i in range(1500)),
        "a tag that runs": "!!python/object/apply:os.system ['touch hacked']\n",
        "a tag that names": "train: {epochs: !!python/name:os.system }\n",
        "5,000 digits": "train: {epochs: " + "9" * 5000 + "}\n",
        "a sexagesimal number": "train: {epochs: " + "1:" * 5000 + "1}\n",
        "NaN": "optimiser: {lr: .nan}\n",
        "infinity": "optimiser: {lr: .inf}\n",
        "a list": "- a\n- b\n",
        "text": "hello\n",
        "a tab": "train:\n\tepochs: 1\n",
        "NUL bytes": b"train: \0\n",
        "no UTF-8": b"train: \xff\xfe\n",
        "control characters": "train: {\x1b[31m: 1}\n",
        "keys that are no text": "1: 2\n[a]: 3\n",
        "a key that is a list": "? [a, b]\n: 1\n",
        "an unknown section": "trian: {epochs: 1}\n",
        "tasks of nothing": "tasks: {}\n",
        "tasks that are a list": "tasks: [a]\n",
        "tasks that are null": "tasks:\n",
        "tasks of an unknown kind": "tasks: {a: {kind: magic, data: {path: scenes}}}\n",
        "tasks beside one without a name": "head: linear\ntasks: {a: {data: {path: scenes}}}\n",
        "a task whose name is a path": "tasks: {../../x: {kind: multi_label, data: {path: scenes}}}\n",
        "merges of merges": "a: &a {x: 1}\nb: &b {<<: [" + "*a, " * 20_000 + "*a]}\n",
        "a long line": "train: {epochs: '" + "x" * (4 * MB) + "'}\n",
        "a timestamp": "train: {epochs: 2026-01-01}\n",
        "a binary": "train: {epochs: !!binary aGVsbG8=}\n",
        "a set": "train: !!set {a, b}\n",
    }
    for name, content in texts.items():

        def recipe(box: Box, content: bytes | str = content) -> None:
            box.get("photos")
            box.write("own.yaml", content)
            box.run("train", "photos", "--recipe", "own.yaml", "--out", "new", codes=[2], memory=MOST, cpu=10)

        made.add(f"--recipe: {name}", recipe)

    def empty(box: Box) -> None:
        box.get("photos")
        box.write("own.yaml", "")
        box.run("train", "photos", "--recipe", "own.yaml", *QUICK, "--out", "new", codes=[0, 2], writes=["new/**"])

    made.add("--recipe: empty", empty)
    for kind in ("pipe", "folder", "endless"):

        def special(box: Box, kind: str = kind) -> None:
            box.get("photos")
            _special(box / "own.yaml", kind)
            box.run("train", "photos", "--recipe", "own.yaml", "--out", "new", codes=[2], memory=MOST, cpu=20)

        made.add(f"--recipe: a {kind}", special)

    for name in (
        "a bomb of aliases",
        "flow nested deep",
        "a tag that runs",
        "NUL bytes",
        "no UTF-8",
        "a list",
        "5,000 digits",
    ):
        for command in ("evaluate", "compare", "train --resume"):

            def stored(box: Box, name: str = name, command: str = command) -> None:
                box.get("run")
                box.get("other")
                box.write("run/config.yaml", texts[name])
                words = {
                    "evaluate": ["evaluate", "run"],
                    "compare": ["compare", "run", "other", "--resamples", "100", "--out", "compared"],
                    "train --resume": ["train", "--resume", "--out", "run"],
                }[command]
                box.run(*words, codes=[2], memory=MOST, cpu=10)

            made.add(f"config.yaml: {name}: {command}", stored)
    for number in range(20):

        def mutate(box: Box, number: int = number) -> None:
            box.get("run")
            path = box / "run" / "config.yaml"
            path.write_bytes(mutated(path.read_bytes(), box.dice))
            words = ["evaluate", "run"] if number % 2 else ["train", "--recipe", "run/config.yaml", "--out", "new"]
            box.run(*words, codes=[0, 1, 2], writes=["new/**"], memory=2 * MOST, cpu=60)

        made.add(f"config.yaml: mutated {number:02d}", mutate)

    splits = {
        "paths that lead elsewhere": "file_name,split\n../../x.jpg,train\n",
        "an unknown split": "file_name,split\nphoto000.jpg,tarin\n",
        "an image twice": "file_name,split\nphoto000.jpg,train\nphoto000.jpg,val\n",
        "NUL bytes": b"file_name,split\n\0,train\n",
        "an open quote": 'file_name,split\n"photo000.jpg,train\n',
        "no rows": "file_name,split\n",
        "empty": "",
        "a field of a megabyte": "file_name,split\n" + "x" * MB + ",train\n",
    }
    for name, content in splits.items():

        def split(box: Box, content: bytes | str = content) -> None:
            box.get("photos")
            box.write("parts.csv", content)
            box.run("train", "photos", *QUICK, "--set", "data.split_file=parts.csv", "--out", "new", codes=[2])

        made.add(f"data.split_file: {name}", split)

    facts: dict[str, bytes | str] = {
        "a bomb of aliases": BOMB,
        "parents in a circle": "red: {parents: [green]}\ngreen: {parents: [red]}\nblue: {}\nwhite: {}\n",
        "nested deep": "a: " + "[" * 20_000 + "]" * 20_000,
        "a tag that runs": "!!python/object/apply:os.system ['touch hacked']\n",
        "no UTF-8": b"red: \xff\n",
        "numbers": "1: 2\n",
        "empty": "",
    }
    for name, content in facts.items():

        def labels(box: Box, content: bytes | str = content) -> None:
            box.get("photos")
            box.write("labels.yaml", content)
            words = ["train", "photos", *QUICK, "--set", "data.labels=labels.yaml", "--out", "new"]
            box.run(*words, codes=[2], memory=MOST, cpu=15)

        made.add(f"data.labels: {name}", labels)
    return made


def _checkpoints() -> Collection:
    """The newest checkpoint that is whole goes on, or the reason is said; what comes of it is what would have."""
    made = Collection("damaged checkpoints")

    def damage(name: str, change: Callable[[Path, Path, Box], Any], codes: tuple[int, ...] = (0,)) -> None:
        for several in (False, True):

            def work(box: Box, several: bool = several) -> None:
                kind = "-tasks" if several else ""
                box.get(f"half{kind}", "half")
                manifests = sorted((box / "half" / "checkpoints").glob("step-*.json"))
                newest = manifests[-1]
                change(newest, newest.with_suffix(".safetensors"), box)
                said = box.run(
                    "train", "--resume", "--out", "half", codes=codes, writes=["half/**"], memory=2 * MOST, cpu=60
                )
                if said.code == 0:
                    same = weights_of(box / "half") == weights_of(box.kit.folder / f"long{kind}")
                    box.expect(same, "the resumed run has other weights")

            made.add(f"{name}{' of tasks' * several}", work)

    def cut(share: float) -> Callable[[Path, Path, Box], None]:
        return lambda m, w, box: w.write_bytes(w.read_bytes()[: int(w.stat().st_size * share)]) and None

    for share in (0, 0.1, 0.5, 0.99):
        damage(f"cut at {share:.0%}", cut(share))
    damage("no manifest", lambda m, w, box: m.unlink())
    damage("no weights", lambda m, w, box: w.unlink())
    damage("an empty manifest", lambda m, w, box: m.write_bytes(b""))
    damage("a manifest nested deep", lambda m, w, box: m.write_text(deep_json()))
    damage("a manifest that is a list", lambda m, w, box: m.write_text("[]"))
    damage("a manifest of noise", lambda m, w, box: m.write_bytes(bytes(range(256))))
    damage("one bit flipped", lambda m, w, box: w.write_bytes(_flipped(w.read_bytes(), box.dice.random())))
    damage("a manifest that is a pipe", lambda m, w, box: (m.unlink(), os.mkfifo(m)))
    damage("weights that are a pipe", lambda m, w, box: (w.unlink(), os.mkfifo(w)))
    damage("weights that are a folder", lambda m, w, box: (w.unlink(), w.mkdir()))
    damage("a newer one of another run", lambda m, w, box: _newer(m, w), (0, 2))
    damage("no checkpoint at all", lambda m, w, box: shutil.rmtree(m.parent), (0, 2))

    @made.case("resumed with another data set")
    def _(box: Box) -> None:
        box.get("half")
        box.get("photos")
        box.run("train", "photos", *LONG, "--resume", "--out", "half", codes=[2])

    return made


def _flipped(data: bytes, where: float) -> bytes:
    at = int(len(data) * (0.5 + where / 2.1))
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _newer(manifest: Path, weights: Path) -> None:
    later = manifest.with_name("step-999999999.json")
    later.write_text('{"sha256": "0", "bytes": 1}')
    later.with_suffix(".safetensors").write_bytes(b"x")
