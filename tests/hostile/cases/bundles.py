"""Bundles that a stranger made: used or refused, never believed, and never at any price."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hostile.box import Box, Fate, finite
from hostile.case import Collection
from hostile.kit import QUICK, quick_without
from hostile.strange import BOMB, deep_json, edit_json, edit_weights, mutated, put, resum, with_a_strange_value

MB = 1 << 20
MOST = 500 * MB
NAN, INF = float("nan"), float("inf")
MUTATED, MUTATED_TASKS, MUTATED_EARLIER = 70, 40, 10
EARLIER = "earlier"  # bundles of several tasks as version 0.1.0 first wrote them, with all of them in tasks.json
Several = bool | str
STRANGE_THRESHOLDS = {
    "NaN": NAN,
    "infinity": INF,
    "10^400": 10**400,
    "2": 2.0,
    "-1": -1.0,
    "none": None,
    "text": "x",
}


def groups() -> Iterator[Collection]:
    yield _one_task()
    yield _several()
    yield _mutated()
    yield _paths()


def _bundle(box: Box, several: Several) -> Path:
    return box.kit.folder / (several if isinstance(several, str) else "tasks" if several else "run") / "bundle"


def _answer(box: Box, several: Several, codes: list[int], command: str = "predict") -> None:
    box.get("photo.jpg")
    more = ["--task", "labels"] if several else []
    if command == "predict":
        said = box.run("predict", "bundle", "photo.jpg", "--json", *more, codes=codes, memory=MOST, cpu=15)
        if said.code == 0:
            found = said.json()
            box.expect(finite(found), "scores that are no numbers")
            for label in found[0].get("labels", []):
                box.expect(0 <= label["score"] <= 1, f"a score of {label['score']}")
    elif command == "detect":
        more = ["--task", "objects"]
        said = box.run("predict", "bundle", "photo.jpg", "--json", *more, codes=codes, memory=MOST, cpu=30)
        if said.code == 0:
            box.expect(finite(said.json()), "scores that are no numbers")


def _add(
    made: Collection, name: str, several: Several, change: Callable[[Path], Any], codes: tuple[int, ...] = (2,)
) -> None:
    def work(box: Box) -> None:
        shutil.copytree(_bundle(box, several), box / "bundle")
        change(box / "bundle")
        _answer(box, several, list(codes))

    made.add(name, work)


def _each_tensor(value: float, begins: str = "") -> Callable[[Path], None]:
    def change(bundle: Path) -> None:
        def fill(tensors: dict[str, Any]) -> None:
            for name, tensor in tensors.items():
                if name.startswith(begins) and tensor.is_floating_point():
                    tensor.view(-1)[0] = value

        edit_weights(bundle, fill)

    return change


def _tensors(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    return lambda bundle: edit_weights(bundle, change)


def _header(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """The JSON header of the weights, changed; the numbers stay as they are."""

    def work(bundle: Path) -> None:
        data = (bundle / "weights.safetensors").read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + size])
        returned = change(header)
        text = returned if isinstance(returned, bytes) else json.dumps(header).encode()
        put(bundle, "weights.safetensors", struct.pack("<Q", len(text)) + text + data[8 + size :])

    return work


def _file(name: str, content: bytes | str) -> Callable[[Path], None]:
    return lambda bundle: put(bundle, name, content)


def _special(name: str, kind: str) -> Callable[[Path], None]:
    def work(bundle: Path) -> None:
        if kind == "link":
            os.rename(bundle / name, bundle.parent / "elsewhere")
            os.symlink(bundle.parent / "elsewhere", bundle / name)
            return
        (bundle / name).unlink()
        if kind == "pipe":
            os.mkfifo(bundle / name)
        elif kind == "folder":
            (bundle / name).mkdir()
        elif kind == "loop":
            os.symlink(name, bundle / name)
        elif kind == "endless":
            os.symlink("/dev/zero", bundle / name)

    return work


def _set(*path: Any, to: Any) -> Callable[[Any], None]:
    def change(values: Any) -> None:
        for key in path[:-1]:
            values = values[key]
        values[path[-1]] = to

    return change


class _Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch hacked",)


def _first(names: Iterable[str]) -> str:
    """Of those that may not be endless."""
    return min(name for name in names if "selection" not in name)


def _weights_cases(made: Collection, several: bool) -> None:
    def add(name: str, change: Callable[[Path], Any], codes: tuple[int, ...] = (2,)) -> None:
        _add(made, f"weights: {name}", several, change, codes)

    for name, value in (("NaN", NAN), ("infinity", INF), ("minus infinity", -INF)):
        add(f"{name} everywhere", _each_tensor(value))
        add(f"{name} in the heads", _each_tensor(value, "head"))
        add(f"{name} in the first of them", _tensors(lambda t, v=value: t[_first(t)].view(-1).fill_(v)))
    add("1e38 everywhere", _each_tensor(1e38), (0, 2))
    add("no tensor at all", _tensors(lambda t: t.clear()))
    add("a tensor is missing", _tensors(lambda t: t.pop(max(t))))
    add("a tensor too many", _tensors(lambda t: t.update(extra=next(iter(t.values())).clone())))
    add("a wrong shape", _tensors(lambda t: t.update({max(t): t[max(t)].new_zeros(3, 5)})))
    add("a tensor without numbers", _tensors(lambda t: t.update({max(t): t[max(t)].new_zeros(0)})))
    add("whole numbers", _tensors(lambda t: t.update({n: v.int() for n, v in t.items()})), (0, 2))
    add("half precision", _tensors(lambda t: t.update({n: v.half() for n, v in t.items()})), (0, 2))
    add("double precision", _tensors(lambda t: t.update({n: v.double() for n, v in t.items()})), (0, 2))
    add("empty", _file("weights.safetensors", b""))
    add("{}", _file("weights.safetensors", b"{}"))
    add("a pickle", _file("weights.safetensors", pickle.dumps(_Evil())))
    for size in (0, 1, 2**31, 2**32, 2**40, 2**63, 2**64 - 1):
        add(f"a header of {size} bytes", _file("weights.safetensors", struct.pack("<Q", size) + b'{"a":1}'))
    add("a header nested deep", _file("weights.safetensors", _framed(deep_json().encode())))
    add("a header of nested objects", _file("weights.safetensors", _framed(deep_json(kind="{").encode())))
    add("a header that is a list", _file("weights.safetensors", _framed(b"[1, 2]")))
    add("a header of noise", _file("weights.safetensors", _framed(bytes(range(256)))))
    add("a huge shape", _header(lambda h: _one(h).update(shape=[2**40])))
    add("a negative shape", _header(lambda h: _one(h).update(shape=[-1, 5])))
    add("a shape whose product wraps", _header(lambda h: _one(h).update(shape=[2**32, 2**32])))
    add("offsets backwards", _header(lambda h: _one(h).update(data_offsets=_one(h)["data_offsets"][::-1])))
    add("offsets beyond the end", _header(lambda h: _one(h).update(data_offsets=[0, 2**40])))
    add("overlapping tensors", _header(lambda h: [e.update(data_offsets=[0, 4]) for n, e in h.items() if n[0] != "_"]))
    add("an unknown type", _header(lambda h: _one(h).update(dtype="F128")))
    add("a type of other size", _header(lambda h: _one(h).update(dtype="F64")))
    add("metadata of numbers", _header(lambda h: h.update(__metadata__={"values": 5})))
    add("metadata that is no JSON", _header(lambda h: h.update(__metadata__={"values": "{"})), (0, 2))
    add("metadata nested deep", _header(lambda h: h.update(__metadata__={"values": deep_json()})), (0, 2))
    add("cut off", lambda b: put(b, "weights.safetensors", (b / "weights.safetensors").read_bytes()[:-100]))
    add(
        "longer than it says",
        lambda b: put(b, "weights.safetensors", (b / "weights.safetensors").read_bytes() + b"x" * 99),
    )
    for kind in ("pipe", "folder", "loop", "link", "endless"):
        add(f"a {kind}", _special("weights.safetensors", kind))


def _framed(header: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + bytes(64)


def _text_cases(made: Collection, several: Several, name: str, codes: tuple[int, ...] = (2,)) -> None:
    title = f"{several}: {name}" if isinstance(several, str) else name
    contents: dict[str, bytes | str] = {
        "empty": "",
        "NUL bytes": b"\0" * 100,
        "no UTF-8": b"\xff\xfe\xff",
        "UTF-16": '{"a": 1}'.encode("utf-16"),
        "a list": "[]",
        "null": "null",
        "a number": "1",
        "NaN": "NaN",
        "lists nested deep": deep_json(),
        "objects nested deep": deep_json(kind="{"),
        "a number of 5,000 digits": '{"format": ' + "9" * 5000 + "}",
        "cut off": '{"format": 1, "labels": [{"na',
        "a pickle": pickle.dumps(_Evil()),
    }
    if name == "config.yaml":
        contents |= {
            "a bomb of aliases": BOMB,
            "a bomb below a setting": "head:\n" + "".join(f"  {line}\n" for line in BOMB.splitlines()),
            "an alias of itself": "a: &a [*a]\n",
            "a mapping of itself": "data: &d {path: *d}\n",
            "a tag that runs": "!!python/object/apply:os.system ['touch hacked']\n",
            "a tag that makes": "data: !!python/name:os.system\n",
            "many documents": "---\na: 1\n---\nb: 2\n",
            "a long flow": "a: [" + "x, " * 300_000 + "]\n",
            "merges": "a: &a {x: 1}\nb: &b {<<: [" + "*a, " * 20_000 + "*a]}\n",
        }
    for kind, content in contents.items():
        _add(made, f"{title}: {kind}", several, _file(name, content), codes)
    for kind in ("pipe", "folder", "link", "endless"):
        _add(made, f"{title}: a {kind}", several, _special(name, kind), codes)


def _one_task() -> Collection:
    made = Collection("strangers' bundles")
    _weights_cases(made, False)
    for name in ("labels.json", "preprocess.json", "config.yaml"):
        _text_cases(made, False, name)

    def labels(name: str, change: Callable[[Any], Any], codes: tuple[int, ...] = (2,)) -> None:
        _add(made, f"labels.json: {name}", False, lambda bundle: edit_json(bundle, "labels.json", change), codes)

    for name, value in {
        "NaN": NAN,
        "infinity": INF,
        "minus infinity": -INF,
        "10^400": 10**400,
        "2": 2.0,
        "-1": -1.0,
        "none": None,
        "true": True,
        "text": "NaN",
        "a list": [0.5],
        "a mapping": {},
    }.items():
        labels(f"a threshold of {name}", _set("labels", 0, "threshold", to=value))

    def too_large(bundle: Path) -> None:
        text = (bundle / "labels.json").read_text()
        put(bundle, "labels.json", re.sub(r'("threshold": )[\d.e-]+', r"\g<1>1e999", text, count=1))

    _add(made, "labels.json: a threshold of 1e999", False, too_large)
    for name, value in {
        "none": None,
        "a number": 7,
        "a list": ["red"],
        "empty": "",
        "blank": " \t ",
        "another's": "green",
        "another's in capitals": "GREEN",
        "a megabyte": "x" * MB,
    }.items():
        codes = (0, 2) if name == "a number" else (2,)
        labels(f"a name that is {name}", _set("labels", 0, "name", to=value), codes)
    labels("no threshold", lambda v: v["labels"][0].pop("threshold"))
    labels("no name", lambda v: v["labels"][0].pop("name"))
    labels("one label too few", lambda v: v["labels"].pop())
    labels("one label too many", lambda v: v["labels"].append({"name": "mauve", "threshold": 0.5}))
    labels("100,000 labels", lambda v: v["labels"].extend({"name": f"l{i}", "threshold": 0.5} for i in range(100_000)))
    labels("no labels", _set("labels", to=[]))
    labels("labels that are a mapping", _set("labels", to={"red": 0.5}))
    labels("another format", _set("format", to=99))
    labels("a parent of itself", _set("labels", 0, "parents", to=["blue"]))
    labels(
        "parents in a circle",
        lambda v: [e.update(parents=[v["labels"][i - 1]["name"]]) for i, e in enumerate(v["labels"])],
    )
    labels("a parent that is none", _set("labels", 0, "parents", to=["nothing"]))
    labels("parents that are numbers", _set("labels", 0, "parents", to=5))
    labels("a fingerprint of a megabyte", _set("thresholds_fitted_on", to="x" * MB), (0, 2))
    labels("a text source with escapes", _set("text_source", to="\x1b[2J\x1b]0;title\x07"), (0, 2))

    def shape(name: str, change: Callable[[Any], Any], codes: tuple[int, ...] = (2,)) -> None:
        _add(
            made, f"preprocess.json: {name}", False, lambda bundle: edit_json(bundle, "preprocess.json", change), codes
        )

    for key in ("mean", "std"):
        for name, value in {
            "NaN": [NAN] * 3,
            "infinity": [INF] * 3,
            "10^400": [10**400] * 3,
            "two of them": [0.5, 0.5],
            "text": ["a", "b", "c"],
            "a number": 0.5,
        }.items():
            shape(f"{key} of {name}", _set(key, to=value))
    shape("std of 0", _set("std", to=[0.0] * 3))
    shape("std of -1", _set("std", to=[-1.0] * 3))
    shape("std of 1e-320", _set("std", to=[1e-320] * 3))
    for size in (0, -1, 1.5, "64", None, 10**6, 10**9, 10**30, NAN):
        shape(f"a side of {size}", _set("size", to=size))
    for key, value in {"interpolation": "magic", "resize": "melt", "crop_share": NAN, "extra": 1}.items():
        shape(f"{key} {value}", _set(key, to=value))
    shape("a crop of nothing", lambda v: v.update(resize="crop", crop_share=0.0))
    shape("a crop of -1", lambda v: v.update(resize="crop", crop_share=-1.0))
    shape("no side", lambda v: v.pop("size"))

    def setting(name: str, old: str, new: str, codes: tuple[int, ...] = (2,)) -> None:
        def change(bundle: Path) -> None:
            text = (bundle / "config.yaml").read_text()
            assert old in text, old
            put(bundle, "config.yaml", text.replace(old, new, 1))

        _add(made, f"config.yaml: {name}", False, change, codes)

    setting("an unknown head", "name: linear", "name: liner")
    setting("an unknown backbone", "name: test_efficientnet", "name: no_such_net")
    setting("a backbone from a hub", "name: test_efficientnet", "name: hf-hub:evil/model")
    setting("a backbone from a folder", "name: test_efficientnet", "name: local-dir:/etc")
    setting("another head", "name: linear", "name: ml_decoder\n  dim: 64")
    setting("a head of gigabytes", "name: linear", "name: ml_decoder\n  dim: 1000000000")
    setting("a head with many layers", "name: linear", "name: query2label\n  layers: 1000000000")
    setting("a large backbone", "name: test_efficientnet", "name: vit_gigantic_patch14_224")
    setting("a sharpness of NaN", "sharpness: 1.0", "sharpness: .nan")
    setting("a dropout of NaN", "dropout: 0.0", "dropout: .nan", (0, 2))
    setting("an attention of infinity", "attention: 0.0", "attention: .inf")
    setting("an unknown setting", "kind: multi_label", "kind: multi_label\nhack: 1")
    setting("an image side of NaN", "image_size: 64", "image_size: .nan", (0, 2))
    setting("an unknown loss", "name: bce", "name: somebodys_own", (0,))
    setting("an unknown optimiser", "name: adamw", "name: somebodys_own", (0, 2))
    setting("weights from a path", "weights: none", "weights: /etc/passwd", (0, 2))

    sums: dict[str, Callable[[dict[str, Any]], Any]] = {
        "a file elsewhere": lambda v: v["sha256"].update({"../../next-door/diary.txt": "0"}),
        "an absolute path": lambda v: v["sha256"].update({"/etc/passwd": "0"}),
        "a file is not listed": lambda v: v["sha256"].pop("README.md"),
        "sums that are numbers": lambda v: v["sha256"].update({"README.md": 5}),
        "a list": lambda v: v.update(sha256=[]),
        "none": lambda v: v.update(sha256=None),
    }
    for name, alter in sums.items():

        def change(bundle: Path, alter: Callable[[dict[str, Any]], Any] = alter) -> None:
            values = json.loads((bundle / "checksums.json").read_text())
            alter(values)
            (bundle / "checksums.json").write_text(json.dumps(values))

        _add(made, f"checksums.json: {name}", False, change)
    for name, text in {
        "nested deep": deep_json(),
        "empty": "",
        "NaN": "NaN",
        "nested objects": deep_json(kind="{"),
    }.items():
        _add(made, f"checksums.json: {name}", False, lambda b, text=text: (b / "checksums.json").write_text(text))
    _add(made, "checksums.json: a pipe", False, _special("checksums.json", "pipe"))
    _add(made, "a file was changed after the sums were made", False, lambda b: (b / "labels.json").write_text("{}"))

    for command in ("evaluate", "explain", "Predictor"):

        def elsewhere(box: Box, command: str = command) -> None:
            shutil.copytree(box.kit.folder / "run" / "bundle", box / "bundle")
            _each_tensor(NAN, "head")(box / "bundle")
            box.get("photo.jpg")
            if command == "evaluate":
                box.run("evaluate", "bundle", "--data", str(box.kit.photos), "--json", "e.json", codes=[2])
            elif command == "explain":
                box.run("explain", "bundle", "photo.jpg", codes=[2])
            else:
                box.expect(box.python(_refused_by_python), "it was loaded")

        made.add(f"weights of NaN: {command}", elsewhere)
    return made


def _refused_by_python() -> bool:
    import manylabel as ml

    try:
        ml.Predictor.load("bundle")
    except ml.ManylabelError:
        return True
    return False


def _one(header: dict[str, Any]) -> dict[str, Any]:
    """A tensor of a header."""
    found: dict[str, Any] = next(
        entry for name, entry in header.items() if name != "__metadata__" and entry["dtype"] == "F32"
    )
    return found


def _several() -> Collection:
    made = Collection("strangers' bundles of several tasks")
    _weights_cases(made, True)
    for name in ("tasks/labels/labels.json", "tasks/objects/preprocess.json", "config.yaml"):
        _text_cases(made, True, name)

    def task(name: str, file: str, change: Callable[[Any], Any], codes: tuple[int, ...] = (2,)) -> None:
        file = f"tasks/{file}"
        _add(made, f"{file}: {name}", True, lambda bundle: edit_json(bundle, file, change), codes)

    labels, objects = "labels/labels.json", "objects/labels.json"
    for name, value in STRANGE_THRESHOLDS.items():
        task(f"a threshold of {name}", labels, _set("labels", 0, "threshold", to=value))
        task(f"a detection threshold of {name}", objects, _set("thresholds", 0, to=value))
    task("thresholds too few", labels, lambda v: v["labels"][0].pop("threshold"))
    task("thresholds too many", objects, lambda v: v["thresholds"].append(0.5))
    task("no thresholds", objects, _set("thresholds", to=[]))
    task("labels too few", labels, lambda v: v["labels"].pop())
    task("a label twice", labels, lambda v: v["labels"].__setitem__(0, v["labels"][1]))
    task("an empty label", labels, _set("labels", 0, "name", to=""))
    task("labels that are text", labels, _set("labels", to="sun"))
    task("another format", labels, _set("format", to=99))
    task("std of 0", "objects/preprocess.json", _set("std", to=[0.0] * 3))
    for side in (0, -1, None, 10**6, 10**30, NAN):
        task(f"a side of {side}", "objects/preprocess.json", _set("size", to=side))
    _lists_of_tasks(made)
    _earlier(made)
    return made


def _lists_of_tasks(made: Collection) -> None:
    """Which tasks there are is said by settings, folders and checksums."""

    def listed(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
        return lambda bundle: edit_json(bundle, "checksums.json", lambda v: change(v["sha256"]) and None)

    def gone(bundle: Path) -> None:
        shutil.rmtree(bundle / "tasks" / "objects")

    def unlisted(bundle: Path) -> None:
        gone(bundle)
        resum(bundle)

    def too_many(bundle: Path) -> None:
        shutil.copytree(bundle / "tasks" / "labels", bundle / "tasks" / "more")
        listed(lambda sums: sums.update({f"tasks/more/{name}.json": "" for name in ("labels", "preprocess")}))(bundle)

    def linked(bundle: Path) -> None:
        os.rename(bundle / "tasks" / "labels", bundle.parent / "elsewhere")
        os.symlink("labels", bundle / "tasks" / "labels")

    def of_one_task(bundle: Path) -> None:
        shutil.copy(bundle / "tasks" / "labels" / "labels.json", bundle / "labels.json")
        listed(lambda sums: sums.update({"labels.json": ""}))(bundle)

    _add(made, "the files of a task are missing", True, gone)
    _add(made, "the files of a task are missing and not listed", True, unlisted)
    _add(made, "a task too many", True, too_many)
    _add(made, "a folder of a task that is a link in a circle", True, linked)
    _add(made, "a file of one task among them", True, of_one_task)
    for name in ("tasks/../labels.json", "tasks/../../next-door/labels.json", "/etc/labels.json", "tasks//labels.json"):

        def elsewhere(bundle: Path, name: str = name) -> None:
            sums = json.loads((bundle / "checksums.json").read_text())
            sums["sha256"][name] = "0"
            (bundle / "checksums.json").write_text(json.dumps(sums))

        _add(made, f"checksums.json: {name}", True, elsewhere)


def _earlier(made: Collection) -> None:
    """What version 0.1.0 first wrote is read, and with the same care."""
    _add(made, "earlier: as it was", EARLIER, lambda bundle: None, (0,))
    for name, value in (("NaN", NAN), ("infinity", INF)):
        _add(made, f"earlier: weights: {name} everywhere", EARLIER, _each_tensor(value))
        _add(made, f"earlier: weights: {name} in the heads", EARLIER, _each_tensor(value, "head"))
        _add(made, f"earlier: weights: a deviation of {name}", EARLIER, _each_tensor(value, "std"))
    _add(made, "earlier: weights: a deviation of 0", EARLIER, _each_tensor(0.0, "std"))
    _add(made, "earlier: weights: a tensor is missing", EARLIER, _tensors(lambda t: t.pop(max(t))))
    _text_cases(made, EARLIER, "tasks.json")
    _text_cases(made, EARLIER, "config.yaml")

    def tasks(name: str, change: Callable[[Any], Any]) -> None:
        _add(made, f"tasks.json: {name}", EARLIER, lambda bundle: edit_json(bundle, "tasks.json", change))

    for name, value in STRANGE_THRESHOLDS.items():
        tasks(f"a threshold of {name}", _set("tasks", "labels", "thresholds", 0, to=value))
        tasks(f"a detection threshold of {name}", _set("tasks", "objects", "thresholds", 0, to=value))
    tasks("thresholds too few", lambda v: v["tasks"]["labels"]["thresholds"].pop())
    tasks("no thresholds", _set("tasks", "labels", "thresholds", to=[]))
    tasks("labels too few", lambda v: v["tasks"]["labels"]["labels"].pop())
    tasks("a label twice", lambda v: v["tasks"]["labels"]["labels"].__setitem__(0, v["tasks"]["labels"]["labels"][1]))
    tasks("an empty label", _set("tasks", "labels", "labels", 0, to=""))
    tasks("labels that are text", _set("tasks", "labels", "labels", to="sun"))
    tasks("a task is missing", lambda v: v["tasks"].pop("objects"))
    tasks("a task too many", lambda v: v["tasks"].update(more=v["tasks"]["labels"]))
    tasks("tasks that are a list", _set("tasks", to=[]))
    tasks("another format", _set("format", to=99))


def _mutated() -> Collection:
    made = Collection("mutated bundles")
    files = ("labels.json", "preprocess.json", "config.yaml", "weights.safetensors", "checksums.json")

    of_tasks = ("tasks/labels/labels.json", "tasks/objects/preprocess.json", "tasks/objects/labels.json")

    def one(number: int, several: Several) -> None:
        names = ("tasks.json", "config.yaml") if several == EARLIER else (*of_tasks, *files[2:]) if several else files

        def work(box: Box) -> None:
            name = names[number % len(names)]
            shutil.copytree(_bundle(box, several), box / "bundle")
            path = box / "bundle" / name
            if name.endswith(".json") and box.dice.random() < 0.7:
                values = with_a_strange_value(json.loads(path.read_text()), box.dice)
                path.write_text(json.dumps(values), encoding="utf-8")
            else:
                path.write_bytes(mutated(path.read_bytes(), box.dice))
            if name != "checksums.json":
                resum(box / "bundle")
            _answer(box, several, [0, 1, 2])

        kind = several if several == EARLIER else "tasks" if several else "one task"
        made.add(f"{kind} {number:03d} {names[number % len(names)]}", work)

    for number in range(MUTATED):
        one(number, False)
    for number in range(MUTATED_TASKS):
        one(number, True)
    for number in range(MUTATED_EARLIER):
        one(number, EARLIER)
    return made


def _paths() -> Collection:
    """What leaves says nothing of where its user lives, and needs nothing that stayed there."""
    made = Collection("bundles that travel")

    def no_paths(box: Box, bundle: Path) -> None:
        for path in bundle.rglob("*"):
            if path.is_file() and str(box.root).encode() in path.read_bytes():
                raise Fate("wrong answer", f"{path.name} of the bundle tells where its user lives")

    def with_weights(suffix: str) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            box.get("photo.jpg")
            (box / "secret").mkdir()
            path = box / "secret" / f"weights{suffix}"

            def save() -> None:
                import timm
                import torch
                from safetensors.torch import save_file

                state = timm.create_model("test_efficientnet", num_classes=0).state_dict()
                save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)

            box.python(save, writes=["secret/**"])
            words = [*quick_without("backbone.weights"), "--set", f"backbone.weights={path}"]
            box.run("train", "photos", *words, "--out", "run", writes=["run/**"])
            no_paths(box, box / "run" / "bundle")
            shutil.rmtree(box / "secret")
            shutil.move(box / "run" / "bundle", box / "elsewhere")
            shutil.rmtree(box / "run")
            box.run("predict", "elsewhere", "photo.jpg")

        made.add(f"backbone.weights from a file {suffix}", work)

    with_weights(".safetensors")
    with_weights(".pth")

    def from_paths(name: str, *more: str) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            box.write("secret/split.csv", (box / "photos" / "labels.csv").read_text())
            box.run("data", "split", "photos", "--out", "secret/own.csv", writes=["secret/own.csv"])
            box.write("secret/labels.txt", "red\ngreen\nblue\nwhite\n")
            words = [word.format(box=box.path) for word in more]
            box.run("train", str(box / "photos"), *QUICK, *words, "--out", "run", writes=["run/**"])
            no_paths(box, box / "run" / "bundle")

        made.add(name, work)

    from_paths("the data's path")
    from_paths("data.split_file", "--set", "data.split_file={box}/secret/own.csv")
    from_paths("data.labels", "--set", "data.labels={box}/secret/labels.txt")
    from_paths("data.images", "--set", "data.images={box}/photos/images")

    @made.case("a bundle of several tasks")
    def _(box: Box) -> None:
        box.get("small.yaml")
        box.get("photos")
        recipe = (box / "small.yaml").read_text()
        import yaml

        values = yaml.safe_load(recipe)
        values["tasks"]["labels"]["data"] = {"path": str(box / "photos"), "workers": 0}
        box.write("own.yaml", yaml.safe_dump(values))
        box.run("train", "--recipe", "own.yaml", "--out", "run", writes=["run/**"])
        no_paths(box, box / "run" / "bundle")

    def own_loss(several: str) -> None:
        def work(box: Box) -> None:
            box.get("photos")
            box.get("photo.jpg")

            def train() -> None:
                import manylabel as ml
                from manylabel.loss import LOSSES

                LOSSES.register("mine_alone")(type("Mine", (LOSSES.get("bce"),), {"__doc__": "My own."}))
                more = [word for word in QUICK if word != "--set"]
                ml.train("photos", out="run", settings=[*more, "loss.name=mine_alone"])

            box.python(train, writes=["run/**"])
            if several == "predict":
                box.run("predict", "run", "photo.jpg")
            elif several == "evaluate":
                box.run("evaluate", "run", "--split", "test")
            else:
                box.run("explain", "run", "photo.jpg", writes=["explanations/**"])

        made.add(f"a loss that the user registered: {several}", work)

    for command in ("predict", "evaluate", "explain"):
        own_loss(command)
    return made
