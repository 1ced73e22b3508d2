from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from manylabel.config import DataConfig, ScenesConfig
from manylabel.data.dataset import pixel_loader
from manylabel.data.object_dataset import ObjectBatch, ObjectDataset
from manylabel.data.object_transform import ObjectTransform, bounds
from manylabel.data.read import read_table
from manylabel.data.sampler import EpochBatches
from manylabel.data.scenes import draw_scene
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import LabelSpace
from manylabel.preprocess import Preprocess

SQUARE = Preprocess(64, (0.5,) * 3, (0.5,) * 3)
PLAIN = ObjectTransform(SQUARE)
VARIED = ObjectTransform(SQUARE, flip=True, scale=(0.5, 1.5))


def square(left: int, top: int, side: int) -> list[list[int]]:
    return [[left, top, left + side, top, left + side, top + side, left, top + side]]


GOOD = {"image_id": 1, "category_id": 1, "bbox": [10, 10, 40, 30], "segmentation": square(10, 10, 30), "iscrowd": 0}


def coco(folder: Path, *annotations: dict[str, Any]) -> Table:
    """Two images of 96 × 72 and their annotations, as a file that is read in the usual way."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for name in ("a.jpg", "b.jpg"):
        Image.fromarray(rng.integers(0, 255, (72, 96, 3), dtype=np.uint8)).save(folder / name)
    rows = [{"id": number, "area": 100} | row for number, row in enumerate(annotations, 1)]
    text = {
        "images": [{"id": i, "file_name": n, "width": 96, "height": 72} for i, n in ((1, "a.jpg"), (2, "b.jpg"))],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": rows,
    }
    (folder / "labels.json").write_text(json.dumps(text))
    return read_table(DataConfig(path=str(folder / "labels.json"), format="coco"))


def epoch(table: Table, number: int, *, workers: int = 0, batch: int = 3, seed: int = 4) -> dict[int, Any]:
    order = EpochBatches(np.arange(len(table)), batch, shuffle=True, seed=seed)
    order.epoch = number
    found = {}
    for each in pixel_loader(ObjectDataset(table, VARIED, seed, random=True), order, workers):
        assert isinstance(each, ObjectBatch)
        for row, pixels, target in zip(each.rows.tolist(), each.pixels, each.targets, strict=True):
            found[row] = (pixels, target.boxes, target.labels, target.masks)
    return found


def same(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.fixture(scope="module")
def scenes() -> Table:
    return read_table(DataConfig(path="scenes", scenes=ScenesConfig(train=6, val=2, size=128)))


def test_scenes_come_with_their_objects(scenes: Table) -> None:
    dataset = ObjectDataset(scenes, PLAIN)
    for row in range(3):
        scene = draw_scene(0, row, 128)
        _, (pixels, target, place), reason, _ = dataset[0, row]
        assert reason == ""
        assert pixels.shape == (3, 64, 64)
        truth = dataset.stored.truth(row)
        assert truth.size == (128, 128)
        assert [scenes.labels.names[i] for i in truth.target.labels] == [thing.label for thing in scene.objects]
        np.testing.assert_array_equal(truth.target.boxes.numpy(), [thing.box for thing in scene.objects])
        np.testing.assert_array_equal(truth.target.masks.numpy(), [thing.mask for thing in scene.objects])
        assert not truth.target.ignore.any()
        assert len(target) > 0
        assert (place.back(target.boxes)[:, None] - truth.target.boxes).abs().amax(dim=2).amin(dim=1).max() < 1e-3
        assert (bounds(target.masks) - target.boxes).abs().max() <= 2  # half as large, with thin ends


def test_labels_that_a_model_does_not_know_are_left_out(scenes: Table) -> None:
    few = scenes.with_labels(LabelSpace(("tree", "bird")))
    dataset = ObjectDataset(few, PLAIN)
    seen = torch.cat([dataset.stored.truth(row).target.labels for row in range(len(few))])
    everything = [thing.label for row in range(len(few)) for thing in draw_scene(0, row, 128).objects]
    assert seen.tolist() == [("tree", "bird").index(name) for name in everything if name in ("tree", "bird")]


def test_what_is_seen_depends_on_seed_epoch_and_row_alone(scenes: Table) -> None:
    reference = epoch(scenes, 1)
    for other in (epoch(scenes, 1, workers=2), epoch(scenes, 1, batch=2)):
        assert all(same(reference[row], other[row]) for row in range(len(scenes)))
    assert any(not torch.equal(reference[row][0], found[0]) for row, found in epoch(scenes, 2).items())
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    epoch(scenes, 0)
    assert torch.equal(torch.rand(2), expected)


def test_workers_that_are_spawned_can_be_given_the_data_set(tmp_path: Path) -> None:
    dataset = ObjectDataset(coco(tmp_path / "d", GOOD), PLAIN)
    copied = pickle.loads(pickle.dumps(dataset))  # noqa: S301 (our own bytes)
    assert torch.equal(copied[0, 0][1][1].boxes, dataset[0, 0][1][1].boxes)


def test_boxes_masks_and_flags_of_a_label_file(tmp_path: Path) -> None:
    runs = {"size": [72, 96], "counts": [0, 72 * 20, 72 * 76]}
    crowd = GOOD | {"category_id": 2, "bbox": [0, 0, 20, 72], "segmentation": runs, "iscrowd": 1}
    dataset = ObjectDataset(coco(tmp_path / "d", GOOD, crowd), PLAIN)
    truth = dataset.stored.truth(0)
    assert truth.size == (96, 72)
    assert truth.target.labels.tolist() == [0, 1]
    assert truth.target.boxes.tolist() == [[10, 10, 50, 40], [0, 0, 20, 72]]
    assert truth.target.ignore.tolist() == truth.crowd.tolist() == [False, True]
    assert truth.target.masks is not None
    assert truth.target.masks.sum(dim=(1, 2)).tolist() == [900, 1440]
    batch = dataset.collate([dataset[0, 0], dataset[0, 1]])
    assert batch.pixels.shape == (2, 3, 64, 64)
    assert [len(target) for target in batch.targets] == [2, 0]  # an image may have no objects
    torch.testing.assert_close(batch.targets[0].boxes[1], torch.tensor([0, 0, 64 * 20 / 96, 64]))


def test_objects_without_a_mask_have_their_box(tmp_path: Path) -> None:
    bare = {name: value for name, value in GOOD.items() if name != "segmentation"}
    some = ObjectDataset(coco(tmp_path / "some", GOOD, bare), PLAIN).stored.truth(0).target
    assert some.masks is not None
    assert some.masks.flatten(1).any(dim=1).tolist() == [True, False]
    assert ObjectDataset(coco(tmp_path / "none", bare), PLAIN).stored.truth(0).target.masks is None


def test_unreadable_images_are_left_out_and_listed(tmp_path: Path) -> None:
    table = coco(tmp_path / "d", GOOD)
    (tmp_path / "d" / "b.jpg").write_bytes(b"<html>gone</html>")
    dataset = ObjectDataset(table, PLAIN)
    batch = dataset.collate([dataset[0, 1], dataset[0, 0]])
    assert batch.rows.tolist() == [0]
    assert len(batch.targets) == len(batch.places) == len(batch.pixels) == 1
    ((key, reason),) = batch.bad
    assert key == "b.jpg"
    assert "HTML" in reason
    assert len(dataset.collate([dataset[0, 1]])) == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"segmentation": {"size": [50, 50], "counts": [0, 2500]}},
            r"b\.jpg, object 2 \(dog\): a mask of 50×50 pixels",
        ),
        ({"segmentation": {"size": [72, 96], "counts": [72 * 96]}}, r"b\.jpg, object 2 \(dog\): its mask has no pixel"),
        ({"segmentation": square(70, 50, 15)}, r"b\.jpg, object 2 \(dog\): its mask lies outside of its box"),
    ],
)
def test_a_mask_that_does_not_fit_is_named(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    second = GOOD | {"image_id": 2}
    dataset = ObjectDataset(coco(tmp_path / "d", GOOD, second, second | {"category_id": 2} | wrong), PLAIN)
    assert len(dataset.collate([dataset[0, 0]]).targets) == 1
    with pytest.raises(DataError, match=said):
        dataset.stored.truth(1)
    with pytest.raises(DataError, match=said):  # and before anything is read
        dataset.stored.check_masks()
    order = EpochBatches(np.arange(2), 2, shuffle=False)
    (batch,) = pixel_loader(dataset, order, workers=1)
    with pytest.raises(DataError, match="^" + said):  # without a word about worker processes
        _ = batch.targets


def voc(folder: Path, box: tuple[int, int, int, int]) -> Table:
    """Two images of 40×30 pixels with a dog at the same place; the box of the second is told."""
    for name in ("JPEGImages", "Annotations", "SegmentationObject", "ImageSets/Main"):
        (folder / name).mkdir(parents=True)
    values = np.zeros((30, 40), np.uint8)
    values[5:15, 4:20] = 1
    for name, (left, top, right, bottom) in {"a": (5, 6, 20, 15), "b": box}.items():
        Image.new("RGB", (40, 30)).save(folder / "JPEGImages" / f"{name}.jpg")
        Image.fromarray(values).save(folder / "SegmentationObject" / f"{name}.png")
        sides = f"<xmin>{left}</xmin><ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax>"
        (folder / "Annotations" / f"{name}.xml").write_text(
            f"<annotation><filename>{name}.jpg</filename><size><width>40</width><height>30</height><depth>3</depth></size>"
            f"<object><name>dog</name><difficult>0</difficult><bndbox>{sides}</bndbox></object></annotation>"
        )
    (folder / "ImageSets" / "Main" / "train.txt").write_text("a\nb\n")
    return read_table(DataConfig(path=str(folder)))


def test_an_image_of_masks_is_compared_with_boxes_before_training(tmp_path: Path) -> None:
    ObjectDataset(voc(tmp_path / "right", (5, 6, 20, 15)), PLAIN).stored.check_masks()
    wrong = ObjectDataset(voc(tmp_path / "wrong", (30, 20, 39, 29)), PLAIN)
    with pytest.raises(DataError, match=r"b\.jpg, object 1 \(dog\): its mask lies outside of its box"):
        wrong.stored.check_masks()


def test_a_broken_photo_does_not_stop_the_comparison_of_masks(tmp_path: Path) -> None:
    dataset = ObjectDataset(voc(tmp_path, (5, 6, 20, 15)), PLAIN)
    (tmp_path / "JPEGImages" / "a.jpg").write_bytes(b"no image")
    dataset.stored.check_masks()
    assert [len(dataset.collate([dataset[0, row]]).targets) for row in (0, 1)] == [0, 1]


def test_objects_of_an_image_are_counted(tmp_path: Path) -> None:
    """Not the images that have a label: two dogs in one of two images are one an image; a crowd is none."""
    more = [GOOD | {"image_id": 2, "category_id": 2}] * 2
    table = coco(tmp_path / "d", GOOD, *more, GOOD | {"image_id": 2, "iscrowd": 1})
    reader = ObjectDataset(table, PLAIN).stored
    assert reader.per_image(np.arange(2)).tolist() == [0.5, 1.0]
    assert reader.per_image(np.array([1])).tolist() == [0.0, 2.0]
    scenes = read_table(DataConfig(path="scenes", scenes=ScenesConfig(train=30, val=5, size=64)))
    found = dict(zip(scenes.labels.names, ObjectDataset(scenes, PLAIN).stored.per_image(np.arange(30)), strict=True))
    assert found["day"] == 0  # a label without a box
    assert sum(found.values()) > 2


def test_an_outline_between_pixels_teaches_its_box(tmp_path: Path) -> None:
    tiny = GOOD | {"segmentation": [[10.6, 10.6, 11.3, 10.6, 11.3, 11.3]]}
    target = ObjectDataset(coco(tmp_path / "d", GOOD, tiny), PLAIN).stored.truth(0).target
    assert target.masks is not None
    assert target.masks.flatten(1).any(dim=1).tolist() == [True, False]


@pytest.mark.parametrize("box", [[10, 10, 10, 30], [20, 10, 15, 30], [float("nan"), 1, 5, 5]])
def test_a_box_without_area_is_named_at_once(tmp_path: Path, box: list[float]) -> None:
    table = coco(tmp_path / "d", GOOD, GOOD | {"image_id": 2, "category_id": 2})
    assert table.objects is not None
    table.objects.box[1] = box
    with pytest.raises(DataError, match=r"b\.jpg, object 1 \(dog\): its box .* has no area; mend it"):
        ObjectDataset(table, PLAIN)


def test_boxes_of_another_image_are_refused(tmp_path: Path) -> None:
    table = coco(tmp_path / "d", GOOD)
    Image.new("RGB", (72, 96)).save(tmp_path / "d" / "a.jpg")
    with pytest.raises(DataError, match=r"a\.jpg has 72×96 pixels, its label file says 96×72"):
        ObjectDataset(table, PLAIN).stored.truth(0)


def test_data_without_boxes_cannot_be_used(photos: Path) -> None:
    with pytest.raises(DataError, match="has no boxes; detection needs"):
        ObjectDataset(read_table(DataConfig(path=str(photos))), PLAIN)


def test_real_voc_objects_lie_on_their_masks() -> None:
    folder = Path(__file__).parents[4] / "shared" / "data" / "voc12-small"
    if not folder.is_dir():
        pytest.skip("needs the real VOC sample beside the repository (../shared/data/voc12-small)")
    table = read_table(DataConfig(path=str(folder)))
    dataset = ObjectDataset(table, PLAIN)
    near = []
    for row in range(0, len(table), 200):
        target = dataset.stored.truth(row).target
        assert target.masks is not None
        drawn = target.take(target.masks.flatten(1).any(dim=1))
        assert drawn.masks is not None
        near += ((bounds(drawn.masks) - drawn.boxes).abs().amax(dim=1) <= 12).tolist()
    assert len(near) > 10
    assert np.mean(near) > 0.8
