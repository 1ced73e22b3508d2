"""The real Label Studio takes what we predict, and we read what people answer there: the same labels, scores and boxes."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pytest
from command import TINY, manylabel, settings
from conftest import write_labelled_photos
from environments import needed
from label_studio_server import LabelStudio, serving
from PIL import Image
from read_back import Boxes, boxes_of, labels_of

pytestmark = [pytest.mark.foreign, pytest.mark.slow]
PHOTOS = 24
Labels = dict[str, set[str]]


def unfit(reason: str) -> pytest.MarkDecorator:
    """A fault of ours that is known; the test that begins to pass says so."""
    return pytest.mark.xfail(strict=True, raises=AssertionError, reason=reason)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos/ and a model; the commands are given here, and it is what the server serves."""
    folder = tmp_path_factory.mktemp("label-studio")
    write_labelled_photos(folder / "photos", PHOTOS)
    short = [*TINY, "train.epochs=1", "data.workers=0"]
    trained = manylabel("train", "photos", "--out", "run", *settings(*short), cwd=folder)
    assert trained.returncode == 0, trained.stderr
    return folder


@pytest.fixture(scope="module")
def studio(place: Path) -> Iterator[LabelStudio]:
    needed("label-studio")
    with serving(place / "server", documents=place) as server:
        yield server


@pytest.fixture(scope="module")
def predicted(place: Path, studio: LabelStudio) -> int:
    """A project with our predictions, as the command line wrote them."""
    done = manylabel("predict", "run", "photos", "--label-studio", "out/tasks.json", cwd=place)
    assert done.returncode == 0, done.stderr
    project = studio.project("predicted", (place / "out/label_config.xml").read_text(encoding="utf-8"))
    said = studio.import_file(project, place / "out/tasks.json")
    assert (said["task_count"], said["prediction_count"]) == (PHOTOS, PHOTOS)
    return project


def test_it_takes_our_labels_and_scores(place: Path, studio: LabelStudio, predicted: int) -> None:
    said = json.loads(manylabel("predict", "run", "photos", "--json", cwd=place).stdout)
    wanted = {Path(one["image"]).name: one["labels"] for one in said}
    tasks = studio.tasks(predicted)
    assert {name_of(task) for task in tasks} == wanted.keys()
    for task in tasks:
        (prediction,) = task["predictions"]
        labels = wanted[name_of(task)]
        assert chosen(prediction["result"]) == {one["label"] for one in labels if one["above"]}
        least_sure = min(one["score"] if one["above"] else 1 - one["score"] for one in labels)
        assert prediction["score"] == pytest.approx(least_sure, abs=1e-5)
        assert prediction["model_version"] == "manylabel"
    assert len({task["predictions"][0]["score"] for task in tasks}) > PHOTOS // 2


def test_its_interface_offers_our_labels(studio: LabelStudio, predicted: int) -> None:
    project = studio.call("GET", f"/api/projects/{predicted}")
    (control,) = project["parsed_label_config"].values()
    assert (control["type"], set(control["labels"])) == ("Choices", {"red", "green", "blue", "white"})


def test_it_shows_the_images(place: Path, studio: LabelStudio, predicted: int) -> None:
    connect(studio, predicted, place / "photos")
    for task in studio.tasks(predicted)[:3]:
        shown = studio.fetch("GET", task["data"]["image"])
        assert shown == (place / "photos/images" / name_of(task)).read_bytes()


def test_it_shows_nothing_that_lies_in_its_root_itself(place: Path, studio: LabelStudio, predicted: int) -> None:
    """Why `unreachable` asks for a folder in between."""
    with pytest.raises(AssertionError, match="subdirectory"):
        connect(studio, predicted, place)


@pytest.mark.parametrize("how", [pytest.param("leave", marks=unfit("images lie in the root itself")), "copy"])
def test_convert_says_how_images_are_shown(place: Path, tmp_path: Path, how: str) -> None:
    file = tmp_path / "tasks.json"
    done = manylabel("data", "convert", "photos", file, "--to", "label-studio", "--images", how, cwd=place)
    assert done.returncode == 0, done.stderr
    told = told_root(done.stdout + done.stderr)
    assert told is not None
    assert not unreachable(file, told)


@pytest.mark.parametrize(
    "images",
    [
        "photos",
        pytest.param("{place}/photos", marks=unfit("the address is not below the root")),
        pytest.param("alone.jpg", marks=unfit("the image lies in the root itself")),
    ],
)
def test_predict_names_images_that_can_be_shown(place: Path, tmp_path: Path, images: str) -> None:
    """Below the folder that it tells, or else the one in which it was called."""
    (place / "alone.jpg").write_bytes((place / "photos/images/photo000.jpg").read_bytes())
    file = tmp_path / "tasks.json"
    done = manylabel("predict", "run", images.format(place=place), "--label-studio", file, cwd=place)
    assert done.returncode == 0, done.stderr
    assert not unreachable(file, told_root(done.stdout + done.stderr) or place)


def test_we_read_what_people_answered(place: Path, studio: LabelStudio, predicted: int, tmp_path: Path) -> None:
    wanted = answer(studio, predicted)
    export = tmp_path / "JSON.json"
    export.write_bytes(studio.export(predicted, "JSON"))
    assert labels_of(export, tmp_path, f"data.images={place / 'photos/images'}") == wanted


def test_what_was_not_answered_is_left_out(place: Path, studio: LabelStudio, predicted: int, tmp_path: Path) -> None:
    """One task was skipped and one has nothing but our prediction, which is no answer."""
    wanted = answer(studio, predicted)
    export = tmp_path / "all.json"
    export.write_bytes(studio.export(predicted, "JSON", everything=True))
    images = f"data.images={place / 'photos/images'}"
    assert labels_of(export, tmp_path, images) == wanted
    assert len(wanted) == PHOTOS - 2
    done = manylabel("data", "check", export, "--json", tmp_path / "found.json", *settings(images))
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["images"] == PHOTOS - 2
    assert found["support"] == Counter(label for labels in wanted.values() for label in labels)


def test_boxes_go_there_and_back(place: Path, studio: LabelStudio, tmp_path: Path) -> None:
    """From COCO into Label Studio, accepted there by a person, and out again."""
    source = boxed_photos(place / "boxed")
    done = manylabel("data", "convert", "boxed/coco.json", "boxed-tasks/tasks.json", "--to", "label-studio", cwd=place)
    assert done.returncode == 0, done.stderr
    project = studio.project("boxed", (place / "boxed-tasks/label_config.xml").read_text(encoding="utf-8"))
    said = studio.import_file(project, place / "boxed-tasks/tasks.json")
    assert (said["task_count"], said["prediction_count"]) == (len(source), len(source))
    for task in studio.tasks(project):
        studio.annotate(task["id"], task["predictions"][0]["result"])
    export = tmp_path / "boxed.json"
    export.write_bytes(studio.export(project, "JSON"))
    images = f"data.images={place / 'boxed'}"
    assert labels_of(export, tmp_path, images) == {n: {label for label, _ in boxes} for n, boxes in source.items()}
    same_boxes(boxes_of(export, tmp_path, images), source, 1e-3)


@pytest.mark.parametrize(
    ("kind", "tolerance", "more"),
    [
        ("YOLO", 0.01, ["data.format=yolo"]),
        pytest.param("YOLO", 0.01, [], marks=unfit("YOLO is not recognised where its images are elsewhere")),
        pytest.param("COCO", 0.01, [], marks=unfit("names that begin with ../ are refused, also with data.images")),
        pytest.param("VOC", 1.01, [], marks=unfit("the eight signs and __ before a name are not taken off")),
    ],
)
def test_we_read_its_box_formats_beside_our_images(
    place: Path, studio: LabelStudio, tmp_path: Path, kind: str, tolerance: float, more: list[str]
) -> None:
    """What it converts itself, with the images where they were all the time; VOC has whole pixels."""
    images = place / tmp_path.name
    source = boxed_photos(images)
    export = converted(studio, images, kind, source, tmp_path / "export")
    same_boxes(boxes_of(export, tmp_path, f"data.images={images}", *more), source, tolerance)


@pytest.mark.parametrize(("kind", "tolerance"), [("COCO_WITH_IMAGES", 0.01), ("YOLO_WITH_IMAGES", 0.01), ("VOC", 1.01)])
def test_we_read_its_box_formats_with_their_images(
    place: Path, studio: LabelStudio, tmp_path: Path, kind: str, tolerance: float
) -> None:
    """It puts eight signs before the name of each image that it packs."""
    images = place / tmp_path.name
    source = boxed_photos(images)
    found = boxes_of(converted(studio, images, kind, source, tmp_path / "export"), tmp_path)
    same_boxes({re.sub("^[0-9a-f]{8}__", "", name): boxes for name, boxes in found.items()}, source, tolerance)


@unfit("its cells are cut at the commas within them, without a word")
def test_its_csv_is_not_misread(place: Path, studio: LabelStudio, predicted: int, tmp_path: Path) -> None:
    """Cells like {"choices": ["red"]} are read, or refused; never taken for names."""
    wanted = answer(studio, predicted)
    export = tmp_path / "answers.csv"
    export.write_bytes(studio.export(predicted, "CSV"))
    assert "choices" in export.read_text(encoding="utf-8")
    its_own = "data.ignore_columns=[annotation_id, annotator, created_at, id, lead_time, updated_at]"
    values = settings(its_own, f"data.images={place / 'photos/images'}")
    done = manylabel("data", "convert", export, tmp_path / "read.csv", "--to", "csv", *values)
    if done.returncode == 0:
        assert labels_of(tmp_path / "read.csv", tmp_path, f"data.images={place / 'photos/images'}") == wanted
    else:
        assert "Label Studio" in done.stderr


def answer(studio: LabelStudio, project: int) -> Labels:
    """What a person said of each image, said once: our labels accepted, others chosen, none; one skipped, one left."""
    tasks = studio.tasks(project)
    names = ("red", "green", "blue", "white")
    wanted: Labels = {}
    for number, task in enumerate(tasks[:-1]):
        given = {name for bit, name in enumerate(names) if number >> bit & 1}
        if number < 3:
            given = chosen(task["predictions"][0]["result"])
        skipped = number == len(tasks) - 2
        if not task["annotations"]:
            result = {"id": "answer", "from_name": "labels", "to_name": "image", "type": "choices"}
            results = [{**result, "value": {"choices": sorted(given)}}] if given else []
            studio.annotate(task["id"], results, skipped)
        if not skipped:
            wanted[name_of(task)] = given
    return wanted


def told_root(output: str) -> Path | None:
    """The folder that a command says Label Studio is to serve."""
    found = re.search(r"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT=(.+)", output)
    return Path(found[1].strip()) if found else None


def unreachable(tasks: Path, root: Path) -> list[str]:
    """Addresses under which the server finds no file, or one that no storage can hold: these lie in folders of the root."""
    addresses = [task["data"]["image"] for task in json.loads(tasks.read_text(encoding="utf-8"))]
    assert addresses
    files = [root / normpath(unquote(address.partition("?d=")[2])).lstrip("/") for address in addresses]
    return [str(file) for file in files if not file.is_file() or root not in file.parent.parents]


def connect(studio: LabelStudio, project: int, folder: Path) -> None:
    """Files are shown to those who may see a project with a storage that they lie in."""
    studio.call("POST", "/api/storages/localfiles", {"project": project, "path": str(folder), "use_blob_urls": True})


def boxed_photos(folder: Path) -> Boxes:
    """Photos and their coco.json, in `folder`; the boxes of each, as (label, [left, top, width, height])."""
    folder.mkdir()
    source: Boxes = {
        "one.jpg": [("cat", [9.0, 18.0, 48.0, 36.0])],
        "two.jpg": [("cat", [0.0, 0.0, 24.0, 72.0]), ("dog", [48.0, 36.0, 48.0, 36.0])],
        "ü 3.jpg": [("dog", [12.0, 9.0, 6.0, 4.5])],
    }
    for number, name in enumerate(source):
        Image.fromarray(np.full((72, 96, 3), 60 * number, np.uint8)).save(folder / name)
    boxes = [(image, *box) for image, name in enumerate(source) for box in source[name]]
    content = {
        "images": [{"id": i, "file_name": name, "width": 96, "height": 72} for i, name in enumerate(source)],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"id": i, "image_id": image, "category_id": 1 + (label == "dog"), "bbox": box, "iscrowd": 0, "area": 1}
            for i, (image, label, box) in enumerate(boxes)
        ],
    }
    (folder / "coco.json").write_text(json.dumps(content), encoding="utf-8")
    return source


def converted(studio: LabelStudio, images: Path, kind: str, source: Boxes, out: Path) -> Path:
    """What the server makes of a project in which a person drew these boxes."""
    config = '<View><Image name="image" value="$image"/><RectangleLabels name="boxes" toName="image">'
    config += "".join(f'<Label value="{name}"/>' for name in ("cat", "dog")) + "</RectangleLabels></View>"
    project = studio.project(kind, config)
    connect(studio, project, images)
    out.mkdir()
    tasks = out.with_suffix(".json")
    shown = [{"data": {"image": f"/data/local-files/?d={images.name}/{quote(name)}"}} for name in source]
    tasks.write_text(json.dumps(shown), encoding="utf-8")
    studio.import_file(project, tasks)
    for task in studio.tasks(project):
        studio.annotate(task["id"], [rectangle(*box) for box in source[name_of(task)]])
    with zipfile.ZipFile(io.BytesIO(studio.export(project, kind))) as packed:
        packed.extractall(out)
    return out


def rectangle(label: str, box: list[float]) -> dict[str, Any]:
    """As Label Studio's own interface says it: in per cent of the image."""
    left, top, width, height = box
    value = {"x": left / 0.96, "y": top / 0.72, "width": width / 0.96, "height": height / 0.72, "rotation": 0}
    return {
        "from_name": "boxes",
        "to_name": "image",
        "type": "rectanglelabels",
        "original_width": 96,
        "original_height": 72,
        "value": {**value, "rectanglelabels": [label]},
    }


def same_boxes(found: Boxes, wanted: Boxes, tolerance: float) -> None:
    assert found.keys() == wanted.keys()
    for name, boxes in wanted.items():
        assert [label for label, _ in found[name]] == [label for label, _ in sorted(boxes)], name
        assert np.allclose([box for _, box in found[name]], [box for _, box in sorted(boxes)], atol=tolerance), name


def chosen(results: list[dict[str, Any]]) -> set[str]:
    return {name for result in results for name in result["value"]["choices"]}


def name_of(task: dict[str, Any]) -> str:
    return Path(unquote(task["data"]["image"].partition("?d=")[2])).name
