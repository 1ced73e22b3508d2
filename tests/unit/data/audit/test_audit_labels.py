"""Company and names of labels: planted facts are found, unknown entries never count, and thousands take seconds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manylabel.data.audit import cooccurrence
from manylabel.data.audit.cooccurrence import company
from manylabel.data.audit.counts import count_labels
from manylabel.data.audit.names import distance, similar_names
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.labels import LabelSpace


def table(matrix: np.ndarray, split: np.ndarray | None = None) -> Table:
    names = LabelSpace(tuple(f"label {i}" for i in range(matrix.shape[1])))
    keys = np.array([f"{i}.jpg" for i in range(len(matrix))])
    return Table("t", FileSource(Path(".")), keys, names, matrix.astype(np.int8), split)


def found(matrix: np.ndarray) -> dict[str, Any]:
    data = table(matrix)
    return company(data, count_labels(data))


def number(name: str) -> int:
    return int(name.split()[1])


def implied(result: dict[str, Any]) -> dict[tuple[int, int], tuple[float, int]]:
    return {(number(e["label"]), number(e["with"])): (e["share"], e["support"]) for e in result["implied"]}


def test_counts_agree_with_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manylabel.data.audit.counts.CELLS", 50)  # many small blocks
    rng = np.random.default_rng(0)
    matrix = rng.choice([-1, 0, 1], (97, 7)).astype(np.int8)
    split = rng.choice(["val", "train", "test"], 97)
    counts = count_labels(table(matrix, split))
    np.testing.assert_array_equal(counts.support, (matrix == 1).sum(axis=0))
    np.testing.assert_array_equal(counts.absent, (matrix == 0).sum(axis=0))
    np.testing.assert_array_equal(counts.per_image, (matrix == 1).sum(axis=1))
    assert counts.unknown_share == pytest.approx((matrix == -1).mean())
    assert list(counts.by_split) == ["train", "val", "test"]
    for name, support in counts.by_split.items():
        np.testing.assert_array_equal(support, (matrix[split == name] == 1).sum(axis=0))


def test_pairs_and_the_picture_agree_with_a_matrix_product() -> None:
    matrix = (np.random.default_rng(1).random((300, 40)) < np.linspace(0.5, 0.02, 40)).astype(np.int8)
    result = found(matrix)
    joint = matrix.astype(int).T @ matrix
    pairs = [(number(a), number(b), together) for a, b, together in result["pairs"]]
    assert all(together == joint[a, b] and a < b for a, b, together in pairs)
    a, b = np.triu_indices(40, 1)
    assert [t for _, _, t in pairs] == sorted(joint[a, b].tolist(), reverse=True)[:200]
    names = list(map(number, result["names"]))
    np.testing.assert_array_equal(np.array(result["counts"]), joint[np.ix_(names, names)])
    assert len(names) == cooccurrence.MOST_NAMES
    assert result["images"] == 300


def test_shares_and_expectations_of_gaps_agree_with_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooccurrence, "BLOCK", 64)
    rng = np.random.default_rng(3)
    matrix = rng.choice([-1, 0, 1], (2000, 12), p=[0.6, 0.2, 0.2]).astype(np.int8)
    matrix[matrix[:, 0] == 1, 1] = 1
    matrix[:1000, 2], matrix[:1000, 3] = 1, 0
    matrix[1000:, 2], matrix[1000:, 3] = 0, rng.choice([-1, 1], 1000)
    result = found(matrix)
    plain, never = {}, {}
    for a in range(12):
        for b in range(12):
            both = [row[b] == 1 for row in matrix if row[a] == 1 and row[b] != -1]
            if a != b and sum(both) >= 0.95 * len(both) > 9:
                plain[a, b] = (round(sum(both) / len(both), 4), len(both))
            expected = len(both) * (matrix[:, b] == 1).sum() / (matrix[:, b] != -1).sum()
            if a < b and not any(both) and expected >= 20:
                never[a, b] = pytest.approx(expected, abs=0.06)
    assert implied(result) == plain
    assert {(number(e["label"]), number(e["other"])): e["expected"] for e in result["exclusive"]} == never
    assert (0, 1) in plain
    assert (2, 3) in never


def test_implied_identical_and_exclusive_labels() -> None:
    rng = np.random.default_rng(2)
    matrix = np.zeros((1000, 7), np.int8)
    matrix[:200, 0] = 1  # 0 always comes with 1
    matrix[:500, 1] = 1
    matrix[300:500, 2] = 1  # 2 nearly always comes with 1: 195 of 200
    matrix[300:305, 1] = 0
    matrix[:9, 3] = 1  # too few images to say that 3 implies 0
    matrix[rng.choice(1000, 60, replace=False), 4] = 1
    matrix[:, 5] = matrix[:, 4]  # the same label twice
    matrix[600:800, 6] = 1  # never with 0, 1 and 2
    result = found(matrix)
    pairs = implied(result)
    assert pairs[0, 1] == (1.0, 200)
    assert pairs[2, 1] == (0.975, 200)
    assert pairs[4, 5] == pairs[5, 4] == (1.0, 60)
    assert set(pairs) == {(0, 1), (2, 1), (4, 5), (5, 4)}
    assert result["implied_count"] == 4
    assert result["identical"] == [["label 4", "label 5"]]
    never = {(number(e["label"]), number(e["other"])): e["expected"] for e in result["exclusive"]}
    assert never == {(0, 2): 40.0, (0, 6): 40.0, (1, 6): 99.0, (2, 6): 40.0}


def test_unknown_entries_never_count() -> None:
    matrix = np.full((100, 3), -1, np.int8)
    matrix[:40, 0] = 1
    matrix[:20, 1] = 1  # of 40 images with 0, 20 have 1 and 20 do not say
    matrix[40:90, :2] = 0
    matrix[:40, 2] = 1
    matrix[20:40, 2] = 0  # here 20 of 40 say no
    result = found(matrix)
    assert implied(result)[0, 1] == (1.0, 20)
    assert (0, 2) not in implied(result)
    assert result["identical"] == []  # 0 and 1 are not known of the same images
    complete = np.where(matrix == -1, 0, matrix)
    assert (0, 1) not in implied(found(complete))


def test_too_much_work_is_done_on_a_part_of_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooccurrence, "WORK", 20_000)
    matrix = np.zeros((4000, 5), np.int8)
    matrix[:3000, 0] = matrix[:3000, 1] = matrix[:3500, 2] = 1
    result = found(matrix)
    assert 1000 < result["images"] < 3500
    assert implied(result)[0, 1][0] == 1.0


def test_many_labels_and_images_take_seconds() -> None:
    rng = np.random.default_rng(4)
    matrix = np.zeros((20_000, 3000), np.int8)
    rows = np.repeat(np.arange(20_000), 8)
    matrix[rows, (3000 * rng.random(len(rows)) ** 3).astype(int)] = 1
    start = time.process_time()
    result = found(matrix)
    assert time.process_time() - start < 20
    assert result["pairs"][0][2] >= result["pairs"][-1][2] > 0


NAMES = {  # pairs that are the same but for…
    "case, spacing, punctuation or accents": [
        ("traffic light", "traffic_light"), ("Dining-Table", "diningtable"), ("café", "cafe"), ("T-shirt", "t shirt"),
    ],
    "singular and plural": [
        ("dog", "dogs"), ("bus", "buses"), ("baby", "babies"), ("person", "people"), ("wine glass", "wine glasses"),
        ("house", "houses"), ("box", "boxes"), ("leaf", "leaves"), ("hot dog", "Hot Dogs"),
    ],
    "spelling": [
        ("motorcycle", "motorcyle"), ("giraffe", "girafe"), ("colour", "color"), ("bicycle", "biycle"),
        ("refrigerator", "refridgerater"), ("red umbrella", "red umbrela"), ("skateboard", "skatebaord"),
    ],
}  # fmt: skip
DIFFERENT = [
    ("car", "cat"), ("bat", "bats man"), ("person 1", "person 2"), ("airbus a320", "airbus a330"), ("mouse", "house"),
    ("horse", "house"), ("baseball bat", "baseball hat"), ("male person", "female person"), ("boat", "goat"),
    ("bus", "us"), ("+", "++"), ("glass", "grass"), ("bear", "pear"),
]  # fmt: skip


def pairs_of(names: list[str], support: list[int] | None = None, together: int = 0) -> list[tuple[str, str, str]]:
    given = np.array(support or [100] * len(names))
    return [
        (names[p["label"]], names[p["other"]], p["why"]) for p in similar_names(names, given, lambda a, b: together)
    ]


@pytest.mark.parametrize(("why", "a", "b"), [(why, a, b) for why, pairs in NAMES.items() for a, b in pairs])
def test_names_that_are_one_label_written_twice(why: str, a: str, b: str) -> None:
    assert pairs_of([a, "zebra", b]) == [(a, b, why)]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_names_of_different_things(a: str, b: str) -> None:
    assert pairs_of([a, b]) == []


def test_support_and_company_decide_about_spelling() -> None:
    assert pairs_of(["horse", "horge"], [500, 3]) == [("horse", "horge", "spelling")]  # much rarer: mistyped
    assert pairs_of(["horse", "house"], [500, 300]) == []
    assert pairs_of(["giraffe", "girafe"], together=2) == []  # somebody gave both to one image
    assert pairs_of(["dog", "dogs"], together=2) == [("dog", "dogs", "singular and plural")]


def test_distance_against_known_values() -> None:
    for a, b, expected in [("", "abc", 3), ("abc", "abc", 0), ("abcd", "abdc", 1), ("ab", "ba", 1), ("kitten", "sitting", 3),
                           ("ca", "abc", 3), ("abcdef", "bacdfe", 2)]:  # fmt: skip
        assert distance(a, b) == distance(b, a) == expected


def test_no_misspelling_within_reach_is_missed() -> None:
    """Against comparing all pairs, on names that are a few letters apart."""
    rng = np.random.default_rng(5)
    letters = np.array(list("abcdef"))
    stems = ["".join(rng.choice(letters, 10)) for _ in range(25)]
    names = list(dict.fromkeys(["q" + stem for stem in stems]))
    for stem in list(names):
        i, j = rng.integers(1, 9, 2)
        names += [stem[:i] + "x" + stem[i:], stem[:j] + stem[j + 1 :], stem[:i] + stem[i + 1] + stem[i] + stem[i + 2 :]]
    names = list(dict.fromkeys(names))
    listed = {frozenset(pair[:2]) for pair in pairs_of(names)}
    expected = {
        frozenset((a, b))
        for k, a in enumerate(names)
        for b in names[k + 1 :]
        if distance(a, b) <= 2 and min(len(a), len(b)) > 9
    }
    assert expected <= listed
    assert len(expected) > 50


def test_ten_thousand_names_take_seconds() -> None:
    rng = np.random.default_rng(6)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    names = ["".join(rng.choice(letters, rng.integers(5, 21))) for _ in range(6000)]
    names += [f"label {i}" for i in range(4000)]  # all within two letters of many others
    start = time.process_time()
    pairs = pairs_of(names)
    assert time.process_time() - start < 20
    assert len(pairs) < 50
