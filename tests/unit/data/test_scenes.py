"""The embedded data set: the same everywhere, by its own rules, with boxes and masks that fit."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from manylabel.data.scenes import LABELS, draw_scene, label_matrix, scene_image, scene_labels
from manylabel.data.scenes.catalogue import EXCLUSIVE, IMPLIES, KINDS, TERRAINS, TIMES
from manylabel.data.scenes.compose import paint
from manylabel.data.scenes.dice import Dice
from manylabel.data.scenes.layout import LARGEST, SMALLEST, Ground, Thing, fits, in_a_row, place, plan_scene
from manylabel.data.scenes.sprite import SPRITES
from manylabel.error import ConfigError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, LabelSpace

COLUMN = {label: i for i, label in enumerate(LABELS)}


@pytest.fixture(scope="module")
def many() -> np.ndarray:
    return label_matrix(0, range(2000)) == PRESENT


def share(matrix: np.ndarray, label: str) -> float:
    return float(matrix[:, COLUMN[label]].mean())


def fingerprint(seed: int, indices: Sequence[int], size: int) -> str:
    """One hash over pixels, labels, boxes and masks."""
    digest = hashlib.sha256()
    for index in indices:
        scene = draw_scene(seed, index, size)
        digest.update(scene.image.tobytes() + repr(sorted(scene.labels)).encode())
        for thing in scene.objects:
            digest.update(repr((thing.label, thing.box)).encode() + thing.mask.tobytes())
    return digest.hexdigest()


# The same everywhere


def test_another_process_with_another_hash_seed_draws_the_same_bytes() -> None:
    indices = [3, 17, 251, 1_000_003]
    code = f"import test_scenes; print(test_scenes.fingerprint(5, {indices}, 128))"
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__), "PYTHONHASHSEED": "7"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == fingerprint(5, indices, 128)


def test_the_order_of_drawing_does_not_matter() -> None:
    forwards = [scene_image(1, index, 96) for index in range(6)]
    backwards = [scene_image(1, index, 96) for index in reversed(range(6))]
    assert all(np.array_equal(a, b) for a, b in zip(forwards, reversed(backwards), strict=True))


def test_seed_and_index_name_different_scenes() -> None:
    keys = [(0, 1), (1, 0), (0, 11), (0, 1 + 10**9), (11, 0), (-1, 0)]
    assert len({scene_image(seed, index, 64).tobytes() for seed, index in keys}) == len(keys)


def test_numpy_integers_name_the_same_scene() -> None:
    assert np.array_equal(scene_image(2, np.int64(40), 64), scene_image(2, 40, 64))  # type: ignore[arg-type]
    assert np.array_equal(label_matrix(2, np.arange(9)), label_matrix(2, range(9)))  # type: ignore[arg-type]


def test_labels_are_those_of_the_first_release() -> None:
    """Published figures rest on these labels: a change here is a new data set."""
    digest = hashlib.sha256(label_matrix(0, range(500), noise=0.1, unknown=0.1).tobytes()).hexdigest()
    assert digest[:16] == "a6546e98782cf042"


@pytest.mark.parametrize("size", [64, 100, 224, 256])
def test_labels_are_the_same_at_every_size_and_are_what_is_drawn(size: int) -> None:
    for index in range(25):
        scene = draw_scene(4, index, size)
        assert scene.labels == scene_labels(4, index)
        assert {thing.label for thing in scene.objects} == scene.labels & set(KINDS)
        assert scene.image.shape == (size, size, 3)
        assert scene.image.dtype == np.uint8
        assert scene.image.flags.writeable


def test_the_picture_alone_has_the_same_pixels() -> None:
    for index in range(12):
        assert np.array_equal(scene_image(6, index, 160), draw_scene(6, index, 160).image)


def test_a_size_too_small_for_the_smallest_object_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 64"):
        draw_scene(0, 0, 63)
    with pytest.raises(ConfigError, match="at least 64"):
        scene_image(0, 0, 0)


# Labels


def test_label_names_are_plain_and_every_object_can_be_drawn() -> None:
    assert len(LabelSpace(LABELS)) == len(LABELS) >= 24
    assert all(label.isascii() and label.isalpha() and label.islower() for label in LABELS)
    assert set(SPRITES) == set(KINDS) < set(LABELS)


def test_every_scene_has_one_time_and_one_terrain(many: np.ndarray) -> None:
    for group in (TIMES, TERRAINS):
        assert (many[:, [COLUMN[label] for label in group]].sum(axis=1) == 1).all()


@pytest.mark.parametrize("group", EXCLUSIVE, ids=lambda group: "-".join(sorted(group)))
def test_labels_that_exclude_each_other_never_meet(many: np.ndarray, group: frozenset[str]) -> None:
    columns = many[:, [COLUMN[label] for label in group]]
    assert columns.sum(axis=1).max() == 1  # each group does occur


@pytest.mark.parametrize("label", IMPLIES)
def test_a_label_brings_what_it_implies(many: np.ndarray, label: str) -> None:
    having = many[many[:, COLUMN[label]]]
    assert len(having) > 5
    assert having[:, [COLUMN[other] for other in IMPLIES[label]]].all()


def test_dogs_come_with_people_but_not_the_other_way_round(many: np.ndarray) -> None:
    dogs, people = many[many[:, COLUMN["dog"]]], many[many[:, COLUMN["person"]]]
    assert 0.85 < share(dogs, "person") < 1.0
    assert share(people, "dog") < 0.4


def test_frequencies_have_a_long_tail(many: np.ndarray) -> None:
    frequencies = sorted(share(many, label) for label in KINDS)
    assert 0.005 < frequencies[0] < 0.02
    assert 0.35 < frequencies[-1] < 0.55
    assert sum(frequency < 0.07 for frequency in frequencies) >= 5


# Objects


@pytest.mark.parametrize(("size", "scenes"), [(64, 150), (256, 60)])
def test_boxes_are_tight_and_masks_apart(size: int, scenes: int) -> None:
    for index in range(scenes):
        objects = draw_scene(0, index, size).objects
        assert len(objects) >= 2
        assert np.sum([thing.mask for thing in objects], axis=0).max() == 1
        for thing in objects:
            left, top, right, bottom = (int(edge) for edge in thing.box)
            assert thing.box == (left, top, right, bottom)
            assert 0 <= left < right <= size
            assert 0 <= top < bottom <= size
            inside = thing.mask[top:bottom, left:right]
            assert inside.sum() == thing.mask.sum()
            assert all(edge.any() for edge in (inside[0], inside[-1], inside[:, 0], inside[:, -1]))


def test_no_object_is_hidden() -> None:
    covered = 0
    for index in range(200):
        scene = draw_scene(8, index, 256)
        _, patches = paint(plan_scene(8, index), 8, index, 256)
        for thing, patch in zip(scene.objects, patches, strict=True):
            visible = thing.mask.sum() / patch.outline(256).sum()
            assert visible >= 0.6, (index, thing.label)
            covered += visible < 1
    assert covered > 5  # objects do stand in front of each other


def test_objects_are_few_to_many_and_of_all_sizes() -> None:
    plans = [plan_scene(0, index) for index in range(600)]
    counts = [len(plan.things) for plan in plans]
    assert min(counts) == 2
    assert 8 <= max(counts) <= 14
    assert 4 < np.mean(counts) < 7
    sizes = {label: [max(t.width, t.height) for p in plans for t in p.things if t.label == label] for label in KINDS}
    everything = np.concatenate([np.asarray(of_label) for of_label in sizes.values()])
    assert everything.min() >= SMALLEST - 1e-9
    assert everything.max() <= LARGEST + 1e-9
    # A log-uniform size has its quartiles in a constant ratio.
    expected = SMALLEST * (LARGEST / SMALLEST) ** np.array([0.25, 0.5, 0.75])
    assert np.allclose(np.quantile(everything, [0.25, 0.5, 0.75]), expected, rtol=0.1)
    for label in ("tree", "person", "bird", "house", "boat"):
        assert min(sizes[label]) < 0.07
        assert max(sizes[label]) > 0.3


def test_a_mask_lies_where_its_object_is_drawn() -> None:
    """Taking one bird away changes the pixels of its mask and none far from it."""
    checked = 0
    for index in range(60):
        plan = plan_scene(3, index)
        bird = next((thing for thing in plan.things if thing.label == "bird"), None)
        if bird is None:
            continue
        image, patches = paint(plan, 3, index, 128)
        without, _ = paint(replace(plan, things=tuple(t for t in plan.things if t is not bird)), 3, index, 128)
        changed = (image != without).any(axis=2)
        scene = draw_scene(3, index, 128)
        mask = scene.objects[plan.things.index(bird)].mask
        patch = patches[plan.things.index(bird)]
        place_of = np.zeros_like(changed)
        place_of[patch.top : patch.top + patch.picture.height, patch.left : patch.left + patch.picture.width] = True
        assert not (changed & ~place_of).any()
        assert changed[mask].mean() > 0.9
        checked += 1
    assert checked >= 10


# Placing


def crowd(labels: Sequence[str], size: float) -> list[Thing]:
    return [
        Thing(label, number, 0.0, 0.0, KINDS[label].width * size, KINDS[label].height * size)
        for number, label in enumerate(labels)
    ]


@pytest.mark.parametrize("ground", [Ground(0.38, 0.88), Ground(0.62, 0.62), Ground(0.42, 0.42)])
def test_everything_finds_a_place_however_crowded(ground: Ground) -> None:
    things = crowd([*KINDS, *KINDS], LARGEST)
    placed = place(things, ground, Dice("crowd"))
    assert sorted(t.number for t in placed) == list(range(len(things)))
    for i, thing in enumerate(placed):
        assert 0 <= thing.left < thing.right <= 1
        assert 0 <= thing.top < thing.bottom <= 1
        assert fits(thing, placed[:i] + placed[i + 1 :])


@pytest.mark.parametrize("ground", [Ground(0.38, 0.88), Ground(0.62, 0.62)])
def test_the_last_resort_is_a_row_without_overlap(ground: Ground) -> None:
    row = in_a_row(crowd(list(KINDS), LARGEST), ground)
    assert all(0 <= t.left < t.right <= 1 for t in row)
    assert all(0 <= t.top < t.bottom <= 1 for t in row)
    assert all(a.right < b.left for a, b in pairwise(row))
    assert all(fits(thing, row[:i]) for i, thing in enumerate(row))


# Faulty labels


def test_the_matrix_says_what_the_scenes_have() -> None:
    matrix = label_matrix(9, range(50, 80))
    assert matrix.dtype == np.int8
    assert set(np.unique(matrix)) == {ABSENT, PRESENT}
    for row, index in zip(matrix, range(50, 80), strict=True):
        assert {label for label, value in zip(LABELS, row, strict=True) if value == PRESENT} == scene_labels(9, index)


@pytest.mark.parametrize(("noise", "unknown"), [(0.1, 0.0), (0.0, 0.3), (0.2, 0.5)])
def test_noise_and_unknown_are_shares_of_the_entries(noise: float, unknown: float) -> None:
    true, faulty = label_matrix(0, range(800)), label_matrix(0, range(800), noise, unknown)
    hidden = faulty == UNKNOWN
    assert hidden.mean() == pytest.approx(unknown, abs=0.01)
    assert (faulty != true)[~hidden].mean() == pytest.approx(noise, abs=0.01)
    # Every label alike, and hiding does not prefer what is present.
    assert np.abs(hidden.mean(axis=0) - unknown).max() < 0.07
    assert hidden[true == PRESENT].mean() == pytest.approx(unknown, abs=0.03)


def test_faults_depend_on_the_index_alone_and_grow_with_the_share() -> None:
    whole = label_matrix(3, range(40), 0.2, 0.2)
    assert np.array_equal(label_matrix(3, [31, 7], 0.2, 0.2), whole[[31, 7]])
    true = label_matrix(3, range(40))
    less, more = label_matrix(3, range(40), 0.1) != true, label_matrix(3, range(40), 0.3) != true
    assert (less <= more).all()
    assert less.sum() < more.sum()


def test_the_whole_share_can_be_flipped_or_hidden() -> None:
    true = label_matrix(0, range(20))
    assert np.array_equal(label_matrix(0, range(20), noise=1.0), 1 - true)
    assert (label_matrix(0, range(20), unknown=1.0) == UNKNOWN).all()


@pytest.mark.parametrize("faults", [{"noise": -0.1}, {"noise": 1.1}, {"unknown": 2.0}, {"unknown": float("nan")}])
def test_a_share_outside_0_to_1_is_refused(faults: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(faults))):
        label_matrix(0, [0], **faults)


def test_no_indices_give_an_empty_matrix() -> None:
    assert label_matrix(0, []).shape == (0, len(LABELS))
