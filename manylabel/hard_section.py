"""Hard instances of judged images: what the report shows of them, with their sizes where the data has boxes."""

from __future__ import annotations

import math

import numpy as np

from manylabel.core.hard_section import HardDetails, HardImage, HardLabel, Instance, PairCounts, SizeShare
from manylabel.data.table import Table
from manylabel.data.thumbnail import thumbnail
from manylabel.error import DecodeError
from manylabel.hard import (
    EASY,
    FEWEST_POSITIVES,
    HARD,
    LIMITS,
    SIZES,
    Pairs,
    definition,
    find_pairs,
    largest_shares,
    size_of,
)

MOST_LABELS = 40
PICTURES = 12


def hard_details(judged: Table, scores: np.ndarray) -> HardDetails:
    """The `hard` entry of details.json; nothing where no image has two labels, for then no instance can be hard."""
    pairs = find_pairs(scores, judged.matrix)
    if not (pairs.per_image(pairs.everything) > 1).any():
        return {}
    share = object_shares(judged, pairs)
    return {
        "hard": {
            "definition": definition(),
            "hard_cost": HARD,
            "easy_cost": EASY,
            **count_pairs(pairs),
            "labels": [row for row in label_rows(pairs, judged.labels.names) if row["hard"]][:MOST_LABELS],
            "sizes": None if share is None else size_rows(pairs, share),
            "examples": [
                {"thumbnail": thumbnail(judged.source, str(judged.keys[row])), **example}
                for row, example in hardest_images(pairs, judged.labels.names, judged.keys, PICTURES)
            ],
        }
    }


def count_pairs(pairs: Pairs) -> PairCounts:
    return {
        "pairs": len(pairs),
        "hard_pairs": int(pairs.hard.sum()),
        "images": pairs.images,
        "images_with_several": int((pairs.per_image(pairs.everything) > 1).sum()),
        "hard_images": int((pairs.per_image(pairs.hard) > 0).sum()),
    }


def label_rows(pairs: Pairs, names: tuple[str, ...] | list[str]) -> list[HardLabel]:
    """Labels that some image has, those with the largest share of hard instances first; rough ones come last."""
    support, low, hard = (pairs.per_label(chosen) for chosen in (pairs.everything, pairs.low, pairs.hard))
    rows: list[HardLabel] = [
        {
            "name": names[i],
            "support": int(support[i]),
            "low": int(low[i]),
            "hard": int(hard[i]),
            "share": round(float(hard[i] / support[i]), 6),
        }
        for i in np.flatnonzero(support)
    ]
    return sorted(rows, key=lambda row: (row["support"] < FEWEST_POSITIVES, -row["share"], -row["hard"], row["name"]))


def size_rows(pairs: Pairs, share: np.ndarray) -> list[SizeShare]:
    """Hard instances among the pairs of each size; `share` [P] is of the largest box in its image."""
    size = size_of(share)
    rows: list[SizeShare] = []
    for number, (name, area) in enumerate(zip(SIZES, limits_in_words(), strict=True)):
        of_size = size == number
        count, hard = int(of_size.sum()), int((of_size & pairs.hard).sum())
        share_hard = round(hard / count, 6) if count else None
        rows.append({"name": name, "area": area, "pairs": count, "hard": hard, "share": share_hard})
    return rows


def limits_in_words() -> tuple[str, ...]:
    """Small, medium and large as shares of the image."""
    small, large = (f"{100 * limit:.2g} %" for limit in LIMITS)
    return f"below {small}", f"{small} to {large}", f"{large} and more"


def hardest_images(
    pairs: Pairs, names: tuple[str, ...] | list[str], keys: np.ndarray, most: int
) -> list[tuple[int, HardImage]]:
    """(row, image with its present labels and their scores), by the largest cost of a hard pair."""
    worst = np.full(pairs.images, -math.inf)
    np.maximum.at(worst, pairs.row[pairs.hard], pairs.cost[pairs.hard])
    rows = np.argsort(-worst, kind="stable")[:most]
    return [
        (int(row), {"file": str(keys[row]), "labels": labels_of(pairs, int(row), names)})
        for row in rows
        if worst[row] > -math.inf
    ]


def labels_of(pairs: Pairs, row: int, names: tuple[str, ...] | list[str]) -> list[Instance]:
    """The labels in an image: hard ones first, then easy ones, then the rest."""
    first, last = np.searchsorted(pairs.row, [row, row + 1])
    mine = sorted(range(first, last), key=lambda i: (not pairs.hard[i], not pairs.easy[i], -pairs.score[i]))
    return [
        {
            "label": names[pairs.label[i]],
            "score": round(float(pairs.score[i]), 4),
            "cost": None if math.isnan(pairs.cost[i]) else round(float(pairs.cost[i]), 4),
            "state": state_of(pairs, i),
        }
        for i in mine
    ]


def state_of(pairs: Pairs, i: int) -> str:
    """hard, missed, found or easy."""
    if pairs.hard[i]:
        return "hard"
    if pairs.easy[i]:
        return "easy"
    return "found" if pairs.found[i] else "missed"


def object_shares(table: Table, pairs: Pairs) -> np.ndarray | None:
    """Share of its image that the largest box of each pair covers [P], NaN where it has none; None without boxes.

    Boxes around crowds and objects that are hard to see say nothing about the size of one object.
    """
    objects = table.objects
    if objects is None or not len(objects):
        return None
    plain = np.flatnonzero(~objects.crowd & ~objects.difficult)
    row, label = objects.row[plain], objects.label[plain]
    share = largest_shares((pairs.row, pairs.label), (row, label), objects.box[plain], image_areas(table, row))
    return None if np.isnan(share).all() else share


def image_areas(table: Table, rows: np.ndarray) -> np.ndarray:
    """Width times height of the images of these rows, from the label file or the image's header; NaN elsewhere. [n]"""
    area = np.full(len(table), np.nan)
    if table.sizes is not None:
        told = table.sizes.astype(np.float64).prod(axis=1)
        area[told > 0] = told[told > 0]
    for row in np.unique(rows):
        if np.isnan(area[row]):
            try:
                width, height = table.source.describe(str(table.keys[row]))
            except DecodeError:
                continue
            area[row] = width * height
    return area
