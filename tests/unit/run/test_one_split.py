"""Tasks that share images share their split: what one is evaluated on trains no other, whatever the files are called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from small_tasks import SMALL

from manylabel import run
from manylabel.config import Config, make_config
from manylabel.data import contents, same_images
from manylabel.data.source import FileSource, SceneSource
from manylabel.data.table import Table
from manylabel.error import ConfigError, DataError
from manylabel.labels import LabelSpace
from manylabel.run.one_split import SplitTable, split_tables
from manylabel.run.prepared import WorkMaker


def table(folder: Path, images: dict[str, int], split: str | None = None, labels: int = 2, **more: Any) -> Table:
    """A file for each name, whose content is a number. `split`: a letter for each of them."""
    folder.mkdir(exist_ok=True)
    for name, content in images.items():
        (folder / name).write_bytes(f"content {content:9d}".encode())
    matrix = np.array([[(content >> bit) & 1 for bit in range(labels)] for content in images.values()], np.int8)
    names = {"t": "train", "v": "val", "e": "test"}
    parts = None if split is None else np.array([names[letter] for letter in split])
    space = LabelSpace(tuple(f"{folder.name} {bit}" for bit in range(labels)))
    return Table(folder.name, FileSource(folder), np.array(list(images)), space, matrix, parts, **more)


def config(share: float = 0.2, **shares: float) -> Config:
    tasks = {
        name: {"kind": "multi_label", "data": {"path": name, "validation_share": shares.get(name, share)}}
        for name in ("a", "b", "c")
    }
    return make_config({"tasks": tasks})


def contents_of(found: SplitTable, part: str) -> set[int]:
    rows = found.table.split == part
    source: Any = found.table.source
    return {int(source.raw(key).split()[1]) for key in found.table.keys[rows]}


def numbered(prefix: str, numbers: range) -> dict[str, int]:
    return {f"{prefix}{number}.jpg": number for number in numbers}


def test_copies_under_other_names_are_the_same_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    known = contents.contents
    monkeypatch.setattr(
        same_images, "contents", lambda source, keys, *more: read.extend(keys) or known(source, keys, *more)
    )
    one, other = table(tmp_path / "one", numbered("x", range(4))), table(tmp_path / "other", numbered("y", range(2, 6)))
    (tmp_path / "other" / "y5.jpg").write_bytes(b"of quite another length")
    assert [ids.tolist() for ids in same_images.same_images([one, other])] == [[0, 1, 2, 3], [2, 3, 4, 5]]
    assert "y5.jpg" not in read  # no other has as many bytes
    read.clear()
    assert [ids.tolist() for ids in same_images.same_images([one, one])] == [[0, 1, 2, 3]] * 2
    assert read == []  # one place
    (tmp_path / "link").symlink_to(tmp_path / "one")
    linked = Table("link", FileSource(tmp_path / "link"), one.keys, one.labels, one.matrix)
    assert [ids.tolist() for ids in same_images.same_images([one, linked])] == [[0, 1, 2, 3]] * 2
    scenes = [
        Table("s", SceneSource(seed, 64), np.array(["scene-000001"]), one.labels, one.matrix[:1]) for seed in (0, 0, 1)
    ]
    assert [ids.tolist() for ids in same_images.same_images(scenes)] == [[0], [0], [1]]


def test_images_of_several_tasks_are_split_once(tmp_path: Path) -> None:
    tables = {
        "a": table(tmp_path / "a", numbered("x", range(200))),
        "b": table(tmp_path / "b", numbered("y", range(100, 300))),
        "c": table(tmp_path / "c", numbered("z", range(1000, 1050))),
    }
    found = split_tables(config(), tables, {})
    a, b = found["a"], found["b"]
    shared = set(range(100, 200))
    assert contents_of(a, "val") & shared == contents_of(b, "val") & shared
    assert not contents_of(a, "val") & contents_of(b, "train")
    assert not contents_of(b, "val") & contents_of(a, "train")
    for one in found.values():
        assert (one.table.split == "val").mean() == pytest.approx(0.2, abs=0.03)
        assert one.new == dict(zip(one.table.keys.tolist(), one.table.split.tolist(), strict=True))  # type: ignore[union-attr]
    alone = split_tables(config(), {"c": tables["c"]}, {})["c"]
    assert np.array_equal(alone.table.split, found["c"].table.split)  # type: ignore[arg-type]


def test_what_one_data_set_says_holds_for_others(tmp_path: Path) -> None:
    tables = {
        "a": table(tmp_path / "a", numbered("x", range(20)), "tttttttttttttvvvveee"),
        "b": table(tmp_path / "b", numbered("y", range(5, 60))),
    }
    found = split_tables(config(), tables, {})
    assert contents_of(found["a"], "train") == set(range(13))
    assert contents_of(found["b"], "train") >= set(range(5, 13))
    assert contents_of(found["b"], "val") >= set(range(13, 17))
    assert contents_of(found["b"], "test") == {17, 18, 19}
    assert found["a"].new == {}


def test_groups_that_reach_across_tasks_stay_together(tmp_path: Path) -> None:
    groups = np.array([f"patient {i // 4}" for i in range(40)])
    tables = {
        "a": table(tmp_path / "a", numbered("x", range(40)), groups=groups),
        "b": table(tmp_path / "b", numbered("y", range(2, 40, 4))),
    }
    found = split_tables(config(), tables, {})
    split = found["a"].table.split
    assert split is not None
    assert all(len(set(split[groups == group])) == 1 for group in groups)
    assert not contents_of(found["a"], "val") & contents_of(found["b"], "train")


def test_official_splits_stand_and_an_image_leaves_training_where_another_task_judges_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {
        "a": table(tmp_path / "a", numbered("x", range(10)), "ttttttvvve"),
        "b": table(tmp_path / "b", numbered("y", range(5, 15)), "tvtttttttv"),
    }
    found = split_tables(config(), tables, {})
    assert contents_of(found["a"], "train") == {0, 1, 2, 3, 4, 5}
    assert contents_of(found["a"], "val") == {6, 7, 8}
    assert contents_of(found["b"], "train") == {5, 10, 11, 12, 13}  # 7, 8 and 9 are val or test of a
    assert contents_of(found["b"], "val") == {6, 14}
    said = " ".join(capsys.readouterr().err.split())
    assert "b: 3 of 8 training images are val or test images of another task; they are left out of training" in said


def test_what_cannot_be(tmp_path: Path) -> None:
    a = table(tmp_path / "a", numbered("x", range(20)), "t" * 15 + "v" * 5)
    inside = table(tmp_path / "b", numbered("y", range(10)))
    with pytest.raises(DataError, match=r"task b: all images of b are in the split of another.*none to evaluate on"):
        split_tables(config(), {"a": a, "b": inside}, {})
    judged = table(tmp_path / "c", numbered("z", range(15, 22)), "tttttvv")
    with pytest.raises(DataError, match=r"task c: all 5 training images of c are val or test images of other tasks"):
        split_tables(config(), {"a": a, "c": judged}, {})
    some = {name: table(tmp_path / f"some {name}", numbered("y", range(20))) for name in ("a", "b")}
    with pytest.raises(ConfigError, match=r"must be the same: .*tasks\.b\.data\.validation_share=0\.5"):
        split_tables(config(b=0.5), some, {})


def test_a_run_that_split_each_task_by_itself_goes_on_as_it_began(tmp_path: Path) -> None:
    tables = {name: table(tmp_path / name, numbered("x", range(10))) for name in ("a", "b")}
    kept = {"a": np.array(["train"] * 8 + ["val"] * 2), "b": np.array(["val"] * 2 + ["train"] * 8)}
    found = split_tables(config(), tables, kept)
    assert all(np.array_equal(found[name].table.split, kept[name]) for name in kept)  # type: ignore[arg-type]
    assert [one.new for one in found.values()] == [{}, {}]


@pytest.fixture
def two_files(tmp_path: Path) -> dict[str, str]:
    """The same 60 photos in a CSV and, as copies under other names and in another order, in a COCO file."""
    folders = {name: tmp_path / name for name in ("csv", "coco")}
    for folder in folders.values():
        folder.mkdir()
    rng = np.random.default_rng(0)
    lines, images, objects = ["file_name,labels"], [], []
    for number in range(60):
        photo = Image.fromarray(rng.integers(0, 255, (32, 32, 3), np.uint8))
        photo.save(folders["csv"] / f"{number}.png")
        lines.append(f"{number}.png,{'dog|cat' if number % 3 == 0 else 'dog' if number % 3 == 1 else 'cat'}")
    for place in rng.permutation(60).tolist():
        (folders["coco"] / f"copy-{place}.png").write_bytes((folders["csv"] / f"{place}.png").read_bytes())
        images.append({"id": place + 1, "file_name": f"copy-{place}.png", "width": 32, "height": 32})
        one = {"category_id": 1 + place % 2, "bbox": [4, 4, 20, 20], "area": 400, "iscrowd": 0}
        objects.append({"id": place + 1, "image_id": place + 1, **one})
    categories = [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}]
    told = {"images": images, "annotations": objects, "categories": categories}
    (folders["coco"] / "objects.json").write_text(json.dumps(told))
    (folders["csv"] / "labels.csv").write_text("\n".join(lines))
    return {"labels": str(folders["csv"] / "labels.csv"), "objects": str(folders["coco"] / "objects.json")}


def test_photos_in_two_files_are_judged_by_no_task_that_others_learn(
    two_files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    makers: list[WorkMaker] = []
    made = WorkMaker.phases
    monkeypatch.setattr(WorkMaker, "phases", lambda self: makers.append(self) or made(self))
    settings = [f"tasks.{name}.data.path={path}" for name, path in two_files.items()]
    settings += ["train.steps=1", "tasks.labels.augment.flip=false"]
    results = run.train(out=tmp_path / "run", recipe=SMALL, settings=settings).results
    for told in results["tasks"].values():
        assert told["images"] >= 9
        assert told["trained_images"] == 0
        assert told["warnings"] == []
    (maker,) = makers
    photos: dict[str, dict[str, set[str]]] = {}
    for name, parts in maker.parts.items():
        keys = maker.data[name].table.keys
        photos[name] = {
            part: {str(keys[row]).rpartition("-")[2] for row in getattr(parts, part)}
            for part in ("train", "held_out", "val")
        }
    assert photos["labels"] == photos["objects"]
    learned = len(photos["labels"]["train"]) + len(photos["labels"]["held_out"])
    assert len(photos["labels"]["held_out"]) == round(0.2 * learned)
