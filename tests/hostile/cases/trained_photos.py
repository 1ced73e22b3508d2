"""A model judged on photos that it was trained on: said first, whatever the photos are called now."""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from hostile.box import Box
from hostile.case import Collection
from hostile.kit import QUICK, write_labelled_photos
from PIL import Image

TRAINED = 16  # photo000 … photo015 of the kit
Change = Callable[[Box, Path], Any]


def groups() -> Iterator[Collection]:
    yield _copies()
    yield _labels()


def _rows(folder: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO((folder / "labels.csv").read_text())))


def _write(folder: Path, rows: list[list[str]]) -> None:
    with open(folder / "labels.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)


def _without_split(folder: Path) -> None:
    _write(folder, [row[:2] for row in _rows(folder)])


def _only(folder: Path, wanted: Callable[[int], bool]) -> None:
    rows = _rows(folder)
    _write(folder, [rows[0][:2], *(row[:2] for number, row in enumerate(rows[1:]) if wanted(number))])


def _renamed(folder: Path) -> None:
    rows = _rows(folder)
    for number, row in enumerate(rows[1:]):
        new = f"IMG_{7919 * (number + 3) % 10007}.jpeg"
        os.rename(folder / "images" / row[0], folder / "images" / new)
        row[0] = new
    _write(folder, [row[:2] for row in rows])


def _saved_anew(folder: Path, make: Callable[[Image.Image], Image.Image], suffix: str, **options: Any) -> None:
    rows = _rows(folder)
    for row in rows[1:]:
        path = folder / "images" / row[0]
        image = make(Image.open(path).convert("RGB"))
        path.unlink()
        row[0] = path.with_suffix(suffix).name
        image.save(folder / "images" / row[0], **options)
    _write(folder, [row[:2] for row in rows])


def told(results: Any, key: str) -> int | None:
    """The figure, wherever in the results it stands."""
    if isinstance(results, dict):
        if isinstance(results.get(key), int):
            return int(results[key])
        found = [told(value, key) for value in results.values()]
    elif isinstance(results, list):
        found = [told(value, key) for value in results]
    else:
        return None
    return next((one for one in found if one is not None), None)


def _copies() -> Collection:
    made = Collection("trained photos")

    def case(
        name: str,
        change: Change,
        exact: int,
        near: int | None = None,
        several: bool = False,
        more: tuple[str, ...] = (),
    ) -> None:
        def work(box: Box) -> None:
            run = _run(box, several)
            box.get("photos", "elsewhere/album")
            change(box, box / "elsewhere" / "album")
            code = 1 if exact and not more else 0
            words = ["evaluate", run, "--data", "elsewhere/album", "--json", "e.json", "--report", "e.html", *more]
            if several:
                words += ["--task", "labels"]
            said = box.run(*words, codes=[code], writes=["e.json", "e.html", "figures/**"])
            results = box.json_file("e.json")
            box.expect(
                told(results, "trained_images") == exact,
                f"trained_images: {told(results, 'trained_images')}, not {exact}",
            )
            if exact:
                box.expect("train" in said.said.lower(), "nothing is said of it")
                page = (box / "e.html").read_text(encoding="utf-8").lower()
                box.expect(
                    "trained on" in page or "was trained" in page or "training images" in page,
                    "the report says nothing of it",
                )
            if near is not None:
                least = near if not near else max(1, round(0.94 * near))
                found = told(results, "trained_near") or 0
                box.expect(found >= least and (near or not found), f"trained_near: {found}, not {near}")

        made.add(f"{name}{' (tasks)' * several}", work)

    def both(name: str, change: Change, exact: int, near: int | None = None, more: tuple[str, ...] = ()) -> None:
        for several in (False, True):
            case(name, change, exact, near, several, more)

    both("a moved copy", lambda box, f: _without_split(f), TRAINED, more=())
    both("a moved copy, allowed", lambda box, f: _without_split(f), TRAINED, more=("--allow-trained",))
    both("a renamed copy", lambda box, f: _renamed(f), TRAINED)
    both("the trained ones alone", lambda box, f: _only(f, lambda n: n < TRAINED), TRAINED)
    both("one of them among others", lambda box, f: _only(f, lambda n: n == 3 or n >= TRAINED), 1)
    both("none of them", lambda box, f: _only(f, lambda n: n >= TRAINED), 0, 0)
    both("recompressed", lambda box, f: _saved_anew(f, lambda i: i, ".jpg", quality=60), 0, TRAINED)
    both("as PNG", lambda box, f: _saved_anew(f, lambda i: i, ".png"), 0, TRAINED)
    case("half the size", lambda box, f: _saved_anew(f, lambda i: i.resize((48, 36)), ".jpg", quality=85), 0, TRAINED)
    case(
        "twice the size", lambda box, f: _saved_anew(f, lambda i: i.resize((192, 144)), ".jpg", quality=85), 0, TRAINED
    )
    case("others altogether", lambda box, f: _others(f), 0, 0)
    case("others altogether, again", lambda box, f: _others(f, 5), 0, 0)

    def linked(box: Box, folder: Path) -> None:
        _without_split(folder)
        shutil.move(folder / "images", box / "store")
        (folder / "images").mkdir()
        for path in (box / "store").iterdir():
            os.symlink(path, folder / "images" / path.name)

    case("a copy made of links", linked, TRAINED)

    def in_folders(box: Box, folder: Path) -> None:
        for number, row in enumerate(_rows(folder)[1:]):
            (folder / f"day{number % 4}").mkdir(exist_ok=True)
            os.rename(folder / "images" / row[0], folder / f"day{number % 4}" / row[0])
        rows = [[f"day{number % 4}/{row[0]}", row[1]] for number, row in enumerate(_rows(folder)[1:])]
        (folder / "images").rmdir()
        _write(folder, [["file_name", "labels"], *rows])

    case("a copy in other folders", in_folders, TRAINED)

    def touched(box: Box, folder: Path) -> None:
        _without_split(folder)
        for path in (folder / "images").iterdir():
            os.utime(path, (1_000_000_000, 1_000_000_000))
            path.chmod(0o600)

    case("a copy with other times and modes", touched, TRAINED)

    def relabelled(box: Box, folder: Path) -> None:
        _write(folder, [["file_name", "labels"], *([row[0], "red"] for row in _rows(folder)[1:])])

    case("a copy with other labels", relabelled, TRAINED)

    def as_json(box: Box, folder: Path) -> None:
        _without_split(folder)
        box.run("data", "convert", str(folder), str(folder / "all.json"), "--to", "coco", writes=["elsewhere/**"])
        (folder / "labels.csv").unlink()

    case("a copy in another format", as_json, TRAINED)

    def judged_as(name: str, words: list[str], code: int, trained: int | None, several: bool = False) -> None:
        def work(box: Box) -> None:
            run = _run(box, several)
            more = ["--task", "labels"] if several else []
            box.run("evaluate", run, *words, *more, "--json", "e.json", codes=[code], writes=["e.json"])
            if trained is not None:
                results = box.json_file("e.json")
                box.expect(
                    (told(results, "trained_images") or 0) == trained,
                    f"trained_images: {told(results, 'trained_images')}",
                )

        made.add(f"{name}{' (tasks)' * several}", work)

    for several in (False, True):
        judged_as("the val part of what it was trained on", [], 0, 0, several)
        judged_as("--split train asks for them", ["--split", "train"], 0, TRAINED, several)
    judged_as("the test part", ["--split", "test"], 0, 0)

    @made.case("a copy whose split column calls all of them test")
    def _(box: Box) -> None:
        run = _run(box, False)
        box.get("photos", "copy")
        rows = _rows(box / "copy")
        _write(box / "copy", [rows[0], *([*row[:2], "test"] for row in rows[1:])])
        box.run("evaluate", run, "--data", "copy", "--split", "test", "--json", "e.json", codes=[1], writes=["e.json"])
        box.expect(told(box.json_file("e.json"), "trained_images") == TRAINED, "not all are found")

    @made.case("a moved copy with --split train")
    def _(box: Box) -> None:
        run = _run(box, False)
        box.get("photos", "copy")
        box.run("evaluate", run, "--data", "copy", "--split", "train", "--json", "e.json", codes=[0], writes=["e.json"])
        box.expect(told(box.json_file("e.json"), "trained_images") == TRAINED, "not all are found")

    @made.case("a run that made the split itself")
    def _(box: Box) -> None:
        box.get("photos")
        _without_split(box / "photos")
        box.run("train", "photos", *QUICK, "--out", "own", writes=["own/**"])
        box.run("evaluate", "own", "--json", "a.json", writes=["a.json"])
        box.expect(not told(box.json_file("a.json"), "trained_images"), "a false alarm on its own val part")
        shutil.copytree(box / "photos", box / "copy")
        box.run("evaluate", "own", "--data", "copy", "--json", "e.json", codes=[1], writes=["e.json"])
        parts = (box / "own" / "split.csv").read_text().count(",train")
        box.expect(told(box.json_file("e.json"), "trained_images") == parts, "not all are found")

    @made.case("compare says it")
    def _(box: Box) -> None:
        run = _run(box, False)
        box.get("other")
        box.get("photos", "copy")
        _without_split(box / "copy")
        for name, model in (("one", run), ("two", "other")):
            (box / name).mkdir()
            words = ["evaluate", model, "--data", "copy", "--json", f"{name}/results.json", "--allow-trained"]
            box.run(*words, writes=[f"{name}/**"])
        said = box.run("compare", "one", "two", "--resamples", "0", writes=["comparison/**"])
        box.expect("trained" in said.said.lower(), "nothing is said of trained photos")

    @made.case("Python: the results say it")
    def _(box: Box) -> None:
        run = _run(box, False)
        box.get("photos", "copy")
        _without_split(box / "copy")

        def work() -> Any:
            import manylabel as ml

            return told(ml.evaluate(run, data="copy")[0], "trained_images")

        box.expect(box.python(work) == TRAINED, "trained_images is not told")

    return made


def _others(folder: Path, seed: int = 3) -> None:
    shutil.rmtree(folder)
    write_labelled_photos(folder, ["val"] * 20, seed=100 + seed)
    _without_split(folder)


def _run(box: Box, several: bool) -> str:
    """A model trained on the kit's photos."""
    if not several:
        box.get("run")
        return "run"
    values = yaml.safe_load((box.kit.folder / "small.yaml").read_text())
    values["tasks"]["labels"]["data"] = {"path": str(box.kit.photos), "workers": 0}
    box.write("own.yaml", yaml.safe_dump(values))
    box.run("train", "--recipe", "own.yaml", "--out", "several", writes=["several/**"])
    return "several"


def _labels() -> Collection:
    """A label that no training image has is no part of the mean, and is named."""
    made = Collection("labels that only val has")

    def data(box: Box, wanted: str) -> None:
        box.get("photos")
        rows = _rows(box / "photos")
        vals = [row for row in rows[1:] if row[2] == "val"]
        for row in {"one": vals[:1], "half": vals[::2], "all": vals}[wanted]:
            row[1] = "|".join([*filter(None, row[1].split("|")), "unicorn"])
        _write(box / "photos", rows)

    def expected(box: Box, results: dict[str, Any], said: str) -> None:
        rows = results["labels"]
        scored = [row["ap"] for row in rows if row["ap"] is not None and row["name"] != "unicorn"]
        box.expect(
            abs(results["mAP"] - float(np.mean(scored))) < 0.02,
            f"mAP {results['mAP']:.2f}, without it {np.mean(scored):.2f}",
        )
        box.expect("unicorn" in said, "the label is not named")

    for wanted in ("one", "half", "all"):

        def train(box: Box, wanted: str = wanted) -> None:
            data(box, wanted)
            said = box.run("train", "photos", *QUICK, "--out", "new", writes=["new/**"])
            expected(box, box.json_file("new/results.json"), said.said)

        def evaluate(box: Box, wanted: str = wanted) -> None:
            data(box, wanted)
            box.run("train", "photos", *QUICK, "--out", "new", writes=["new/**"])
            said = box.run("evaluate", "new", "--json", "e.json", writes=["e.json"])
            expected(box, box.json_file("e.json"), said.said)

        made.add(f"train: {wanted} of the val images", train)
        made.add(f"evaluate: {wanted} of the val images", evaluate)

    @made.case("several tasks")
    def _(box: Box) -> None:
        data(box, "half")
        values = yaml.safe_load((box.kit.folder / "small.yaml").read_text())
        values["tasks"]["labels"]["data"] = {"path": "photos", "workers": 0}
        box.write("own.yaml", yaml.safe_dump(values))
        said = box.run("train", "--recipe", "own.yaml", "--out", "several", writes=["several/**"])
        box.json_file("several/results.json")
        box.expect("unicorn" in said.said, "the label is not named")

    return made
