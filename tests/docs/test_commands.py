"""The README and the quick start as a newcomer follows them: every command runs as it is written, one after another.

Each training is made short by what SHORT and SHORT_TASKS say, and nothing else is added.
"""

from __future__ import annotations

import os
import re
import shlex
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from command import manylabel, settings
from conftest import COLOURS, write_labelled_photos
from doc_blocks import HERE, Block, blocks, table_rows
from doc_names import problems
from PIL import Image

import manylabel as ml

SHORT = ("train.epochs=1",)
# a recipe with several tasks counts steps; most of its time would go into judging the 500 scenes that it draws
SHORT_TASKS = ("train.steps=2", "tasks.labels.data.scenes.val=20", "tasks.objects.data.scenes.val=20")
SEVERAL = ("--recipe adamv-moe", "--recipe all-four")
PHOTOS = 20  # as few as can be split and judged
FOLDERS = 6  # photos of each kind of animal
AT_TIMES = {"bad_images.csv"}  # there only where an image cannot be read


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("features")


@pytest.fixture
def home(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings or weights, and features that both pages may share."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MANYLABEL_CACHE", str(cache))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(("name", "trainings"), [("README.md", 7), ("docs/quickstart.md", 7)])
def test_every_command_of_a_page_runs(name: str, trainings: int, home: Path) -> None:
    text = (HERE / name).read_text(encoding="utf-8")
    folder = sandbox(home / "shell")
    failed, trained = [], 0
    for number, block in enumerate(blocks(text)):
        if block.kind == "shell":
            for line, command in block.commands():
                trained += command.startswith("manylabel train")
                failed += [f"{name}:{line}: {command}\n{said}" for said in run_command(command, folder)]
        elif block.kind == "python":  # another way to the same: it begins where the shell began
            trained += "ml.train(" in block.text
            failed += [f"{name}:{block.line}: {said}" for said in run_python(block, sandbox(home / f"python{number}"))]
        elif block.kind == "csv":
            failed += [f"{name}:{block.line}: {said}" for said in read_csv(block, home / f"csv{number}")]
        else:
            failed.append(f"{name}:{block.line}: nothing here knows what to do with this block:\n{block.text}")
    promised = re.findall(r"`([\w./]+)`", " ".join(table_rows(text, "file")))
    failed += [f"{name} says that a run holds {file}; it does not" for file in missing(folder / "runs/mine", promised)]
    assert not failed, "\n\n".join(failed)
    assert trained >= trainings, f"only {trained} trainings were found in {name}"


def run_command(command: str, folder: Path) -> list[str]:
    """Why it failed, if it did. What sets up an environment is only looked at: the tests run in one."""
    words = shlex.split(command, comments=True)
    if words[0] != "manylabel":
        return problems(command)
    if words[1] == "train":
        words += settings(*(SHORT_TASKS if any(each in command for each in SEVERAL) else SHORT))
    answer = manylabel(*words[1:], cwd=folder)
    return [f"exit code {answer.returncode}\n{answer.stderr[-2000:]}"] if answer.returncode else []


def run_python(block: Block, folder: Path) -> list[str]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        with mock.patch.object(ml, "train", partial(ml.train, settings=SHORT)):
            exec(compile(block.text, "<page>", "exec"), {})
    except (Exception, SystemExit):
        return [f"{block.text}\n{traceback.format_exc(limit=-3)}"]
    finally:
        os.chdir(before)
    return []


def read_csv(block: Block, folder: Path) -> list[str]:
    """A label file that a page shows is read as what it shows."""
    rows = [line.split(",") for line in block.text.split("\n")[1:]]
    folder.mkdir()
    (folder / "labels.csv").write_text(block.text + "\n", encoding="utf-8")
    for file, _ in rows:
        photo(folder / file, 0)
    table = ml.load_data(folder)
    names = np.array(table.labels.names)
    found = {key: sorted(names[row > 0]) for key, row in zip(table.keys.tolist(), table.matrix, strict=True)}
    wanted = {file: sorted(filter(None, labels.split("|"))) for file, labels in rows}
    return [] if found == wanted else [f"read as {found}, not as {wanted}"]


def missing(run: Path, promised: list[str]) -> Iterator[str]:
    for file in promised:
        if file not in AT_TIMES and not (run / file).exists():
            yield file


def sandbox(folder: Path) -> Path:
    """What the pages assume: photos/ with labels.csv, animals/ with a folder for each label, and some photos."""
    write_labelled_photos(folder / "photos", PHOTOS)
    for number, (name, _) in enumerate(zip(("cat", "dog"), COLOURS, strict=False)):
        (folder / "animals" / name).mkdir(parents=True)
        for i in range(FOLDERS):
            photo(folder / "animals" / name / f"{i}.jpg", number)
    for number, name in enumerate(("holiday.jpg", "a.jpg", "b.jpg")):
        photo(folder / name, number)
    return folder


def photo(path: Path, number: int) -> None:
    rng = np.random.default_rng([number, *path.name.encode()])
    pixels = rng.integers(90, 130, (72, 96, 3)).astype(np.uint8)
    pixels[16:48, 24:72] = list(COLOURS.values())[number]
    Image.fromarray(pixels).save(path, quality=92)


def test_a_command_that_fails_is_told(home: Path) -> None:
    folder = sandbox(home / "shell")
    (said,) = run_command("manylabel predict runs/none holiday.jpg", folder)
    assert "exit code 2" in said
    assert "runs/none" in said
    assert run_command("make coffee", folder)
    assert not run_command("manylabel data check photos/", folder)
    assert "no/such" in run_python(Block(1, 'import manylabel as ml\nml.load_data("no/such/")'), folder)[0]
    assert list(missing(folder, ["photos/labels.csv", "report.html"])) == ["report.html"]
    (wrong,) = read_csv(Block(1, "file_name,labels\na.jpg,cat;dog\nb.jpg,cat"), home / "csv")
    assert "not as" in wrong
