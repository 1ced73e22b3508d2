"""manylabel predict and explain: no option is ignored, no image is counted that was not read, no name breaks a file."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from command import manylabel
from net.kept_runs import ARCHIVE, PHOTOS, unpack
from PIL import Image

from manylabel.data.finder import names_of
from manylabel.error import ManylabelError
from manylabel.inference.images import find_images
from manylabel.inference.predictor import Predictor


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(ARCHIVE, tmp_path_factory.mktemp("kept")) / "runs"


@pytest.fixture(scope="module")
def several(kept: Path) -> Path:
    """The folder of a run with the tasks labels and objects."""
    return kept / "tasks"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A photo whose name is bytes that are not UTF-8."""
    folder = tmp_path / "odd"
    folder.mkdir()
    path = os.fsencode(folder) + b"/caf\xe9 1.jpg"
    with open(next(PHOTOS.iterdir()), "rb") as photo, open(path, "wb") as file:
        file.write(photo.read())
    return Path(os.fsdecode(path))


def done(*arguments: str | Path) -> str:
    answer = manylabel(*arguments)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def choices(task: dict[str, Any]) -> list[str]:
    return [name for result in task["predictions"][0]["result"] for name in result["value"]["choices"]]


# --- options ---------------------------------------------------------------------------------------------------------


def test_top_holds_in_every_file(trained: Path, photos: Path, tmp_path: Path) -> None:
    images = photos / "images"
    present = [prediction.present for prediction in Predictor.load(trained).predict(find_images([images]))]
    assert max(map(len, present)) >= 2
    for top in (1, 2):
        made, tasks = tmp_path / f"{top}.csv", tmp_path / f"tasks{top}" / "a.json"
        done("predict", trained, images, "--top", str(top), "--csv", made, "--label-studio", tasks)
        wanted = [labels[:top] for labels in present]
        rows = rows_of(made)
        assert [row["labels"].split("|") if row["labels"] else [] for row in rows] == wanted
        assert [len(row["scores"].split("|")) if row["scores"] else 0 for row in rows] == list(map(len, wanted))
        assert [choices(task) for task in json.loads(tasks.read_text(encoding="utf-8"))] == wanted
        plain = done("predict", trained, images, "--top", str(top))
        assert [line.count(" %") for line in plain.splitlines()] == [len(labels) or 1 for labels in wanted]
        found = json.loads(done("predict", trained, images, "--top", str(top), "--json"))
        assert {len(image["labels"]) for image in found} == {top}


@pytest.mark.parametrize("score", [float("nan"), 2.0, -0.1])
def test_a_score_that_is_none_is_refused(several: Path, score: float) -> None:
    with pytest.raises(ManylabelError, match="score is .*; it must be between 0 and 1"):
        Predictor.load(several).predict(next(PHOTOS.iterdir()), "objects", score=score)


def test_top_holds_on_drawn_pictures(several: Path, tmp_path: Path) -> None:
    photo = next(PHOTOS.iterdir())
    (found,) = Predictor.load(several).predict(photo, "objects", score=0.0)
    assert len(found.objects) > 1  # type: ignore[union-attr]
    for name, options in (("all", []), ("one", ["--top", "1"])):
        asked = ("--task", "objects", "--score", "0", "--overlay", tmp_path / name, *options)
        done("predict", several, photo, *asked)
    everything, one = (Image.open(next((tmp_path / name).iterdir())) for name in ("all", "one"))
    assert everything.tobytes() != one.tobytes()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("train --recipe laptop --recipe demo", "--recipe"),
        ("train photos --epochs 3 --epochs=4", "--epochs"),
        ("predict run photo --top 1 --top 2", "--top"),
        ("predict run photo --csv a.csv --csv b.csv", "--csv"),
        ("explain run photo --method auto --method grad_cam", "--method"),
        ("data split photos --out a.csv --val 0.1 --out b.csv", "--out"),
        ("data split photos --out a.csv --duplicates --no-duplicates", "--duplicates/--no-duplicates"),
        ("bench loader --json a --json b", "--json"),
    ],
)
def test_an_option_that_counts_once_is_refused_when_given_twice(command: str, option: str, tmp_path: Path) -> None:
    answer = manylabel(*command.split(), cwd=tmp_path)
    assert answer.returncode == 2
    assert f"{option} was given twice; choose one" in answer.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "first", "second"),
    [
        ("predict run photo --csv a.out --label-studio ./a.out", "--csv", "--label-studio"),
        ("predict run photo --csv label_config.xml --label-studio a.out", "--csv", "the labelling interface"),
        ("evaluate run --json a.out --report a.out", "--json", "--report"),
        ("data check photos --json a.out --html a.out", "--json", "--html"),
    ],
)
def test_two_outputs_are_two_files(command: str, first: str, second: str, tmp_path: Path) -> None:
    answer = manylabel(*command.split(), cwd=tmp_path)
    assert answer.returncode == 2
    assert f"{first} and {second} both name" in answer.stderr
    assert not list(tmp_path.iterdir())


def test_an_option_that_may_be_repeated_is_not_refused(tmp_path: Path) -> None:
    answer = manylabel("train", "nowhere", "--set", "train.epochs=1", "--set", "train.seed=2", cwd=tmp_path)
    assert "does not exist" in answer.stderr
    assert "twice" not in answer.stderr
    assert manylabel("-q", "-q", "data", "formats").returncode == 0


def test_heads_without_attention_are_refused(trained: Path, photos: Path, tmp_path: Path) -> None:
    answer = manylabel("explain", trained, photos / "images" / "photo000.jpg", "--heads", "--out", tmp_path / "why")
    assert answer.returncode == 2
    assert "--heads" in answer.stderr
    assert "grad_cam" in answer.stderr
    assert not (tmp_path / "why").exists()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("data split nowhere --out a.csv --folds 3 --val 0.1", "--val"),
        ("data fetch --out data", "--out"),
        ("data fetch voc2007 --count 5 --other-labels", "--count, --other-labels"),
        ("cache prune 3f --all", "--all"),
        ("hard run --csv --top 3", "--top"),
    ],
)
def test_no_option_is_ignored(command: str, option: str, tmp_path: Path) -> None:
    answer = manylabel(*command.split(), cwd=tmp_path)
    assert answer.returncode == 2
    assert option in answer.stderr
    assert not list(tmp_path.iterdir())


def test_options_for_intervals_are_refused_where_several_tasks_are_compared(several: Path, tmp_path: Path) -> None:
    answer = manylabel("compare", several, several, "--pair", "a,b", "--out", tmp_path / "new")
    assert answer.returncode == 2
    assert "--pair" in answer.stderr
    assert not (tmp_path / "new").exists()


# --- images that cannot be read ---------------------------------------------------------------------------------------


def test_only_images_that_were_read_are_counted(trained: Path, photos: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"")
    good = photos / "images" / "photo000.jpg"
    made, tasks = tmp_path / "a.csv", tmp_path / "tasks" / "a.json"
    said = done("predict", trained, broken, good, tmp_path / "gone.jpg", "--csv", made, "--label-studio", tasks)
    assert f"1 images are in {made}; 2 could not be read" in said
    assert f"1 images are in {tasks}; 2 could not be read" in said
    assert [row["error"] for row in rows_of(made)] == ["empty file (0 bytes)", "", "file not found"]
    assert len(json.loads(tasks.read_text(encoding="utf-8"))) == 1
    none = manylabel("predict", trained, broken, "--csv", tmp_path / "none.csv")
    assert none.returncode == 1
    assert f"0 images are in {tmp_path / 'none.csv'}; 1 could not be read" in none.stdout
    every = done("predict", trained, good, "--csv", tmp_path / "all.csv")
    assert f"1 images are in {tmp_path / 'all.csv'}\n" in every


@pytest.mark.parametrize("task", ["labels", "objects"])
def test_unreadable_images_for_several_tasks(several: Path, tmp_path: Path, task: str) -> None:
    from manylabel.error import DecodeError

    predictor, photo = Predictor.load(several), next(PHOTOS.iterdir())
    for image in (tmp_path / "missing.jpg", tmp_path, b"nonsense"):
        with pytest.raises(DecodeError):
            predictor.predict(image, task)
    good, missing = predictor.predict([photo, tmp_path / "missing.jpg"], task)
    assert good.error is None
    assert missing.error == "file not found"
    with pytest.raises(DecodeError, match="missing"):
        list(missing.objects if task == "objects" else missing.labels)  # type: ignore[union-attr]
    said = manylabel("predict", several, tmp_path / "missing.jpg", photo, "--task", task)
    assert said.returncode == 0
    assert "missing.jpg: cannot be read: file not found" in said.stdout


# --- names that are not UTF-8 ------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="file names are text there")
def test_a_name_that_is_not_utf_8_in_files_of_predictions(trained: Path, odd: Path, tmp_path: Path) -> None:
    made, tasks = tmp_path / "a.csv", tmp_path / "tasks" / "a.json"
    done("predict", trained, odd, "--csv", made, "--label-studio", tasks)
    assert rows_of(made)[0]["file_name"].endswith("caf\\udce9 1.jpg")
    address = json.loads(tasks.read_text(encoding="utf-8"))[0]["data"]["image"]
    assert unquote_to_bytes(address.partition("?d=")[2]) == os.fsencode(odd)
    assert names_of(address) == (str(odd),)  # we find the file again by its task


@pytest.mark.skipif(os.name == "nt", reason="file names are text there")
def test_a_name_that_is_not_utf_8_on_standard_output(trained: Path, several: Path, odd: Path) -> None:
    assert "caf\\udce9 1.jpg: " in done("predict", trained, odd)
    (found,) = json.loads(done("predict", trained, odd, "--json"))
    assert os.fsencode(found["image"]) == os.fsencode(odd)  # JSON gives the very name back
    assert "caf\\udce9 1.jpg: " in done("predict", several, odd, "--task", "labels")
    gone = manylabel("predict", trained, odd.with_name("x" + odd.name))
    assert gone.returncode == 2
    assert "xcaf\\udce9 1.jpg does not exist" in gone.stderr


@pytest.mark.skipif(os.name == "nt", reason="file names are text there")
def test_a_name_that_is_not_utf_8_in_pictures(trained: Path, several: Path, odd: Path, tmp_path: Path) -> None:
    out = odd.parent / os.fsdecode(b"why\xe9")
    broken = odd.with_name(os.fsdecode(b"broken\xe9.jpg"))
    broken.write_bytes(b"")
    said = done("explain", trained, odd, broken, "--out", out)
    assert "broken\\udce9.jpg: cannot be read" in said
    made = sorted(path.name for path in out.iterdir())
    assert made[-1] == "sheet.png"
    assert made[0].startswith("0001-caf_1-")
    (found,) = json.loads(done("explain", trained, odd, "--label", "red", "--out", out / "more", "--json"))
    assert os.fsencode(found["image"]) == os.fsencode(odd)
    assert Path(found["files"][0]).is_file()
    drawn = tmp_path / os.fsdecode(b"drawn\xe9")
    done("predict", several, odd, "--task", "objects", "--score", "0", "--overlay", drawn)
    assert [path.name for path in drawn.iterdir()] == ["0001-caf_1.png"]
