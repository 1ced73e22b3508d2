"""Copies are found whatever was done to them, other images are not, and the search agrees with comparing all pairs."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from audit_photos import photo, table_of, write
from PIL import Image, ImageEnhance

from manylabel.data.audit import duplicates, inspect_table
from manylabel.data.audit.duplicates import DISTANCE, find_duplicates, near_pairs
from manylabel.data.audit.perceptual import likeness, look
from manylabel.data.connected import connected
from manylabel.data.decode import decode
from manylabel.data.source import SceneSource
from manylabel.data.table import Table
from manylabel.labels import LabelSpace


def encoded(image: Image.Image, kind: str = "JPEG", quality: int = 90) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, quality=quality)
    return file.getvalue()


def changed(image: Image.Image, how: str) -> bytes:
    width, height = image.size
    if how == "half":
        return encoded(image.resize((width // 2, height // 2), Image.Resampling.LANCZOS))
    if how == "a third":
        return encoded(image.resize((width // 3, height // 3), Image.Resampling.BICUBIC))
    if how == "twice":
        return encoded(image.resize((2 * width, 2 * height), Image.Resampling.BICUBIC))
    if how == "poor":
        return encoded(image, quality=25)
    if how == "png":
        return encoded(image, "PNG")
    if how == "brighter":
        return encoded(ImageEnhance.Brightness(image).enhance(1.12))
    if how == "darker":
        return encoded(ImageEnhance.Brightness(image).enhance(0.8))
    if how == "less contrast":
        return encoded(ImageEnhance.Contrast(image).enhance(0.7))
    raise ValueError(how)


WAYS = ["half", "a third", "twice", "poor", "png", "brighter", "darker", "less contrast"]


@pytest.mark.parametrize("how", WAYS)
def test_hash_and_thumbnail_survive(how: str) -> None:
    for seed in range(30):
        image = photo(seed)
        (a, thumb_a), (b, thumb_b) = (
            look(decode(encoded(image), at_least=64)),
            look(decode(changed(image, how), at_least=64)),
        )
        assert (a ^ b).bit_count() <= DISTANCE, seed
        assert likeness(thumb_a[None], thumb_b[None])[0] > duplicates.ALIKE


def test_other_images_are_far() -> None:
    seen = [look(photo(seed)) for seed in range(120)]
    hashes = np.array([hash_ for hash_, _ in seen], np.uint64)
    thumbnails = np.array([thumbnail for _, thumbnail in seen])
    assert len(near_pairs(hashes)[0]) == 0
    a, b = np.triu_indices(120, 1)
    assert likeness(thumbnails[a], thumbnails[b]).max() < 0.8
    assert np.bitwise_count(hashes[a] ^ hashes[b]).mean() == pytest.approx(32, abs=2)  # the bits carry information


def test_a_flat_image_does_not_divide_by_zero() -> None:
    flat = np.full((1, 256), 90, np.uint8)
    assert likeness(flat, flat).tolist() == [0.0]


def brute_force(hashes: np.ndarray) -> set[tuple[int, int]]:
    found = set()
    for i in range(len(hashes) - 1):
        for j in np.flatnonzero(np.bitwise_count(hashes[i + 1 :] ^ hashes[i]) <= DISTANCE).tolist():
            found.add((i, i + 1 + j))
    return found


def planted_hashes(n: int, seed: int, copies: int) -> np.ndarray:
    """Random hashes, some of them with 0 to 12 bits changed from another one, and some often the same."""
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, n, dtype=np.uint64)
    for k in range(copies):
        value = int(hashes[k])
        for bit in rng.choice(64, k % 13, replace=False):
            value ^= 1 << int(bit)
        hashes[n - 1 - k] = value
    hashes[n // 2 : n // 2 + 5] = hashes[n // 2]
    return hashes


def test_search_finds_exactly_what_comparing_all_pairs_finds() -> None:
    for seed in range(3):
        hashes = planted_hashes(3000, seed, 400)
        pairs, left_out = near_pairs(hashes)
        assert left_out == 0
        assert {(a, b) for a, b in pairs.tolist()} == brute_force(hashes)
    clustered = np.random.default_rng(9).integers(0, 1 << 12, 500).astype(np.uint64) << np.uint64(30)  # few bits differ
    assert {(a, b) for a, b in near_pairs(clustered)[0].tolist()} == brute_force(clustered)
    assert near_pairs(np.zeros(0, np.uint64))[0].shape == (0, 2)
    assert near_pairs(np.zeros(1, np.uint64))[0].shape == (0, 2)


def test_a_hundred_thousand_hashes_against_a_sample_of_brute_force() -> None:
    hashes = planted_hashes(100_000, 5, 3000)
    found = {(a, b) for a, b in near_pairs(hashes)[0].tolist()}
    for row in [*range(0, 3000, 60), 50_000, 50_003]:
        near = np.flatnonzero(np.bitwise_count(hashes ^ hashes[row]) <= DISTANCE).tolist()
        expected = {(min(row, other), max(row, other)) for other in near if other != row}
        assert {pair for pair in found if row in pair} == expected
    planted = {(k, 99_999 - k) for k in range(3000) if k % 13 <= DISTANCE}
    assert planted <= found


def test_small_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = planted_hashes(2000, 1, 300)
    whole = near_pairs(hashes)[0]
    monkeypatch.setattr(duplicates, "AT_ONCE", 100)
    np.testing.assert_array_equal(near_pairs(hashes)[0], whole)


def test_too_many_alike_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "MOST_IN_BUCKET", 20)
    pairs, left_out = near_pairs(np.full(50, 12345, np.uint64))
    assert left_out == 30
    assert len(pairs) == 20 * 19 // 2


def test_connected_parts() -> None:
    pairs = np.array([[5, 6], [6, 2], [0, 9], [9, 8], [8, 0], [3, 3]])
    assert connected(10, pairs).tolist() == [0, 1, 2, 3, 4, 2, 2, 7, 0, 0]
    chain = np.random.default_rng(0).permutation(np.stack([np.arange(999), np.arange(1, 1000)], axis=1))
    assert set(connected(1000, chain).tolist()) == {0}
    assert connected(3, np.zeros((0, 2), np.int64)).tolist() == [0, 1, 2]


def test_groups_of_a_table(tmp_path: Path) -> None:
    files: dict[str, Image.Image | bytes] = {f"{i}.jpg": encoded(photo(i)) for i in range(8)}
    files |= {f"one {how}.img": changed(photo(1), how) for how in WAYS}
    files |= {"two again.jpg": files["2.jpg"], "broken.jpg": b"", "broken too.jpg": b""}
    files |= {f"grey{i}.png": Image.new("RGB", (80, 60), (100 + 30 * i,) * 3) for i in range(2)}
    table = table_of(write(tmp_path, files), {key: ["x"] for key in files})
    inspection = inspect_table(table, workers=1)
    group = dict(zip(files, find_duplicates(inspection).group.tolist(), strict=True))
    assert {name for name in files if group[name] == group["1.jpg"]} == {"1.jpg", *(f"one {how}.img" for how in WAYS)}
    assert group["two again.jpg"] == group["2.jpg"]
    assert len({group[f"{i}.jpg"] for i in range(8)} | {group["grey0.png"], group["grey1.png"]}) == 10
    assert group["broken.jpg"] != group["broken too.jpg"]  # nothing is known about them, so they are not the same
    found = find_duplicates(inspection)
    rows = list(files)
    assert found.exact[rows.index("two again.jpg")] == rows.index("2.jpg")
    assert (found.exact == np.arange(len(rows))).sum() == len(rows) - 1


def test_drawn_images_have_no_bytes_but_pixels() -> None:
    source = SceneSource(seed=3, size=96)
    keys = np.array([source.key(i) for i in (0, 1, 2, 1)])
    table = Table("scenes", source, keys, LabelSpace(("a",)), np.ones((4, 1), np.int8))
    inspection = inspect_table(table, workers=1)
    assert inspection.facts["width"].tolist() == [96] * 4
    assert find_duplicates(inspection).group.tolist() == [0, 1, 2, 1]
