"""What `data check` finds and concludes: planted faults in small data sets, and what the conclusions say about them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit_photos import photo, table_of, write
from PIL import Image

from manylabel.config import DataConfig
from manylabel.data.audit import audit, inspect_table, pictures
from manylabel.data.read import read_table
from manylabel.data.table import Table
from manylabel.printing_audit import print_audit


def test_findings_of_good_data(photos: Path) -> None:
    table = read_table(DataConfig(path=str(photos)))
    findings = audit(table, workers=1)
    assert findings.trainable
    assert findings.images == 48
    assert findings.sizes == {"smallest": 96, "median": 96, "largest": 96}
    assert sum(findings.support.values()) == (table.matrix == 1).sum()
    assert list(findings.support.values()) == sorted(findings.support.values(), reverse=True)


def test_unreadable_images_and_missing_splits_are_problems(photos: Path) -> None:
    (photos / "images" / "photo003.jpg").write_bytes(b"")
    table = read_table(DataConfig(path=str(photos)))
    findings = audit(table, workers=2)
    assert not findings.trainable
    assert findings.unreadable == {"photo003.jpg": "empty file (0 bytes)"}
    assert audit(table, max_bad_share=0.05, workers=1).trainable
    only_train = replace(table, split=np.array(["train"] * 48))
    assert any("'val'" in warning for warning in audit(only_train, max_bad_share=0.05, workers=1).warnings)
    only_test = replace(table, split=np.array(["test"] * 48))
    assert any("'train'" in problem for problem in audit(only_test, max_bad_share=0.05, workers=1).problems)


def test_labels_that_are_never_absent_are_a_problem(photos: Path) -> None:
    table = read_table(DataConfig(path=str(photos)))
    only_yes = replace(table, matrix=np.where(table.matrix == 1, 1, -1).astype(np.int8))
    assert any("data.blank=absent" in problem for problem in audit(only_yes, workers=1).problems)


def test_labels_on_one_side_only_are_said(photos: Path) -> None:
    table = read_table(DataConfig(path=str(photos)))
    has_red = table.matrix[:, table.labels.index("red")] == 1
    split = np.where(has_red, "val", "train")
    assert "1 label has no training image: red" in audit(replace(table, split=split), workers=1).warnings
    without_val = np.where(has_red, "test", "train")
    found = audit(replace(table, split=without_val), workers=1)
    assert "1 label has no training image: red" in found.warnings
    assert not any("validation image" in warning for warning in found.warnings)
    assert not any("no training image" in warning for warning in audit(replace(table, split=None), workers=1).warnings)


@pytest.fixture
def planted(tmp_path: Path) -> Table:
    """Thirty good photos, and one of everything that is wrong."""
    files: dict[str, Any] = {f"{i:02d}.jpg": photo(i) for i in range(30)}
    labels = {name: ["dog", "animal"] if i % 2 else ["cat"] for i, name in enumerate(files)}
    split = {name: "val" if i >= 24 else "train" for i, name in enumerate(files)}
    folder = write(tmp_path / "planted", files)
    same = (folder / "03.jpg").read_bytes()
    grey = Image.new("RGB", (90, 70), (127, 127, 127))
    extra: dict[str, tuple[Any, list[str], str]] = {
        "same.jpg": (same, ["dog", "animal"], "val"),  # 03.jpg byte for byte in the other split
        "small.jpg": (photo(5).resize((120, 90)), ["dogs"], "val"),  # 05.jpg made smaller, in the other split
        "other.jpg": ((folder / "07.jpg").read_bytes(), ["cat"], "train"),  # 07.jpg with contradicting labels
        "none1.png": (grey, ["cat"], "train"),
        "none2.png": (grey, ["dog"], "train"),
        "none3.png": (grey, ["animal"], "train"),
        "tiny.png": (photo(90).resize((20, 24)), ["cat"], "train"),
        "strip.png": (photo(91).resize((700, 60)), ["cat"], "train"),
        "huge.png": (photo(92).resize((1500, 1200)), ["cat"], "train"),
        "broken.jpg": (same[:600], ["cat"], "val"),
    }
    write(folder, {name: picture for name, (picture, _, _) in extra.items()})
    write(folder, {"forgotten1.jpg": photo(93), "forgotten2.png": photo(94)})
    write(folder / "masks", {"mask.png": photo(95)})
    labels |= {name: given for name, (_, given, _) in extra.items()}
    split |= {name: part for name, (_, _, part) in extra.items()}
    return table_of(folder, labels, split)


def test_everything_planted_is_found(planted: Table) -> None:
    found = audit(planted, workers=1, max_bad_share=0.1)
    assert found.trainable
    assert list(found.unreadable) == ["broken.jpg"]
    assert found.suspicious["kinds"] == {"blank": 3, "tiny": 1, "narrow": 1, "huge": 1, "placeholder": 1}
    assert {(e["kind"], e["image"]) for e in found.suspicious["images"]} == {
        ("blank", "none1.png"), ("blank", "none2.png"), ("blank", "none3.png"), ("tiny", "tiny.png"),
        ("narrow", "strip.png"), ("huge", "huge.png"), ("placeholder", "none1.png"),
    }  # fmt: skip
    copies = found.duplicates
    assert (copies["exact_copies"], copies["near_copies"], copies["group_count"]) == (4, 1, 4)
    groups = {frozenset(group["images"]): group["kind"] for group in copies["groups"]}
    assert groups == {
        frozenset({"none1.png", "none2.png", "none3.png"}): "exact",
        frozenset({"03.jpg", "same.jpg"}): "exact",
        frozenset({"07.jpg", "other.jpg"}): "exact",
        frozenset({"05.jpg", "small.jpg"}): "near",
    }
    assert found.unlisted == {"count": 2, "first": ["forgotten1.jpg", "forgotten2.png"]}  # masks are elsewhere
    assert found.image_sizes["formats"] == {"JPEG": 33, "PNG": 6}
    assert found.image_sizes["short_side"] == {"smallest": 20, "median": 180, "largest": 1200}
    assert found.image_sizes["most_frequent"][0] == [240, 180, 32]
    assert found.sizes == {"smallest": 24, "median": 240, "largest": 1500}
    assert found.image_sizes["bytes"]["total"] == sum(
        (planted.source.root / key).stat().st_size  # type: ignore[attr-defined]
        for key in planted.keys
        if key != "broken.jpg"
    )


def test_leaks_and_contradictions(planted: Table) -> None:
    found = audit(planted, workers=1)
    assert found.leaks["count"] == 2
    assert found.leaks["images"] == {"train": 2, "val": 2}
    exact, near = found.leaks["pairs"]
    assert (exact["images"], exact["splits"], exact["kind"]) == (["03.jpg", "same.jpg"], ["train", "val"], "exact")
    assert (near["images"], near["splits"], near["kind"]) == (["05.jpg", "small.jpg"], ["train", "val"], "near")
    assert [found.contradictions[which] for which in ("count", "exact", "near")] == [3, 2, 1]
    first, second, third = found.contradictions["groups"]
    assert (first["kind"], first["size"], first["labels"]) == ("exact", 3, ["animal", "cat", "dog"])
    assert (second["kind"], second["images"]) == ("exact", ["07.jpg", "other.jpg"])
    assert second["labels"] == ["animal", "cat", "dog"]
    assert (third["kind"], third["images"]) == ("near", ["05.jpg", "small.jpg"])
    assert (third["labels"], third["differing"]) == (["animal", "dog", "dogs"], 3)
    unknown = planted.matrix.copy()
    unknown[[list(planted.keys).index(key) for key in ("other.jpg", "small.jpg")]] = -1  # nobody says anything of them
    assert audit(replace(planted, matrix=unknown), workers=1).contradictions["count"] == 1
    assert audit(replace(planted, split=None), workers=1).leaks == {"count": 0, "pairs": [], "images": {}}


def test_many_copies_in_two_splits_are_all_counted(tmp_path: Path) -> None:
    files = {f"{i}.png": photo(1) for i in range(50)} | {f"near{i}.jpg": photo(1) for i in range(4)}
    split = {name: "train" if i % 5 else "val" for i, name in enumerate(files)}
    table = table_of(write(tmp_path, files), {name: ["x"] for name in files}, split)
    found = audit(table, workers=1)
    assert found.leaks["count"] == 43 * 11  # every pair, whether exact or near
    assert found.leaks["images"] == {"train": 43, "val": 11}
    assert len({tuple(pair["images"]) for pair in found.leaks["pairs"]}) == 43 * 11
    assert all(pair["splits"][0] != pair["splits"][1] for pair in found.leaks["pairs"])
    assert found.duplicates["group_count"] == 1


def test_warnings_say_it_and_none_of_them_stops_a_training(planted: Table) -> None:
    found = audit(planted, workers=1, max_bad_share=0.1)
    said = "\n".join(found.warnings)
    for words in (
        "2 pairs of the same picture in different splits (2 of train, 2 of val)",
        "4 exact and 1 near copies of other images, in 4 groups",
        "1 pair of label names may be one label written twice: 'dog' and 'dogs'",
        "3 groups of images that look alike, but have different labels (2 exact, 1 near): none1.png and 2 others differ in",
        "7 suspicious images: 3 of nearly one colour",
        "2 images in the data folder are in no label file: forgotten1.jpg, forgotten2.png",
        "1 image cannot be read and will be left out",
        "1 label has no training image: dogs",
    ):
        assert words in said
    assert found.problems == []


def test_groups_in_two_splits_are_said(planted: Table) -> None:
    groups = np.array([f"g{i // 5}" for i in range(len(planted))])
    groups[35:] = ""  # these belong to no group
    found = audit(replace(planted, groups=groups), workers=1)
    assert any("2 groups with images in more than one split" in warning for warning in found.warnings)


def test_labels_in_numbers(tmp_path: Path) -> None:
    names = [f"{i}.png" for i in range(24)]
    folder = write(tmp_path, {name: photo(i, (60, 50)) for i, name in enumerate(names)})
    given = {name: ["a"] * (i < 12) + ["b"] * (i < 9) + ["c"] * (i < 1) for i, name in enumerate(names)}
    table = table_of(folder, given, {name: "train" if i % 2 else "val" for i, name in enumerate(names)})
    matrix = table.matrix.copy()
    matrix[12:18, 1] = -1
    found = audit(replace(table, matrix=matrix), workers=1)
    assert found.support == {"a": 12, "b": 9, "c": 1}
    assert found.support_by_split == {"train": {"a": 6, "b": 4, "c": 0}, "val": {"a": 6, "b": 5, "c": 1}}
    assert found.labels_per_image_counts == {"0": 12, "1": 3, "2": 8, "3": 1}
    assert found.labels_per_image == pytest.approx(22 / 24, abs=1e-3)
    assert found.known_share == {"a": 1.0, "b": 0.75, "c": 1.0}
    assert (found.too_rare_to_split, found.too_rare_to_judge) == (["c"], ["b"])
    assert audit(table, workers=1).known_share == {}


def test_the_json_is_plain_and_without_nan(planted: Table) -> None:
    plain = audit(planted, workers=1).plain()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["schema"] == 1
    broken = replace(planted.subset(np.array([len(planted) - 1])), split=None)  # not one image can be read
    plain = audit(broken, workers=1).plain()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert not plain["trainable"]
    assert plain["sizes"] == {"smallest": 0, "median": 0, "largest": 0}


def test_an_inspection_that_is_there_is_used(planted: Table) -> None:
    inspection = inspect_table(planted, 1)
    for path in planted.source.root.glob("*.*g"):  # type: ignore[attr-defined]
        path.unlink()
    assert list(audit(planted, inspection=inspection).unreadable) == ["broken.jpg"]


def test_pictures_are_small_and_of_what_the_page_shows(planted: Table) -> None:
    found = audit(planted, workers=1)
    shown = pictures(planted, found)
    assert {"none1.png", "tiny.png", "03.jpg", "same.jpg", "05.jpg", "small.jpg", "07.jpg", "other.jpg"} <= shown.keys()
    assert "broken.jpg" not in shown
    assert "00.jpg" not in shown
    assert all(uri.startswith("data:image/jpeg;base64,") and len(uri) < 20_000 for uri in shown.values())


def test_what_is_printed_fits_a_screen(planted: Table, capsys: pytest.CaptureFixture[str]) -> None:
    odd = replace(planted, name="[red]photos[/red]")
    print_audit(audit(odd, workers=1, max_bad_share=0.0), ("a note",))
    said = capsys.readouterr().out
    assert "[red]photos[/red]" in said  # a name, not a colour
    assert "4 exact, 1 near" in said
    assert "  · a note" in said
    assert "broken.jpg: truncated JPEG" in said
    assert "✗ 1 image (2.5%) cannot be read, over the limit of 0.0%" in said
    assert said.rstrip().endswith("not trainable as it is")
    assert len(said.splitlines()) < 50
