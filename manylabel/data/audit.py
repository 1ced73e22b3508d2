"""What to know about data before training on it: counts, rare labels, unreadable images, and whether it can be trained."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from manylabel.data.source import ImageSource
from manylabel.data.table import Table
from manylabel.error import DecodeError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, support

TOO_RARE_TO_SPLIT = 2
TOO_RARE_TO_JUDGE = 10
CHUNK = 64
SMALL_SIDE = 64  # decoding for the check only: enough to find damage, as small as JPEG allows


@dataclass(frozen=True)
class Audit:
    """The findings; `problems` keep a model from being trained, `warnings` do not."""

    name: str
    images: int
    splits: dict[str, int]
    labels: int
    labels_per_image: float
    images_without_labels: int
    unknown_share: float
    support: dict[str, int]
    too_rare_to_split: list[str]
    too_rare_to_judge: list[str]
    sizes: dict[str, int]  # side lengths: smallest, median, largest (long side)
    unreadable: dict[str, str]
    problems: list[str]
    warnings: list[str]

    @property
    def trainable(self) -> bool:
        return not self.problems

    def plain(self) -> dict[str, Any]:
        return {"trainable": self.trainable, **asdict(self)}


def audit(
    table: Table, *, max_bad_share: float = 0.01, workers: int = 2, advance: Callable[[int], None] = lambda _: None
) -> Audit:
    """Count the labels and decode every image once."""
    sides, unreadable = [], {}
    for key, size, reason in _inspect_all(table.source, table.keys.tolist(), workers):
        if size is None:
            unreadable[key] = reason
        else:
            sides.append(max(size))
        advance(1)
    counts = support(table.matrix)
    names = table.labels.names
    per_image = (table.matrix == PRESENT).sum(axis=1)
    splits = dict(Counter(table.split.tolist())) if table.split is not None else {}
    rare = [names[i] for i in np.flatnonzero(counts < TOO_RARE_TO_SPLIT)]
    thin = [names[i] for i in np.flatnonzero((counts >= TOO_RARE_TO_SPLIT) & (counts < TOO_RARE_TO_JUDGE))]
    problems, warnings = _judge(table, splits, unreadable, max_bad_share, rare)
    quartiles = np.percentile(sides, [0, 50, 100]).astype(int).tolist() if sides else [0, 0, 0]
    return Audit(
        name=table.name,
        images=len(table),
        splits=splits,
        labels=len(names),
        labels_per_image=round(float(per_image.mean()), 3),
        images_without_labels=int((per_image == 0).sum()),
        unknown_share=round(float((table.matrix == UNKNOWN).mean()), 6),
        support={names[i]: int(counts[i]) for i in np.argsort(-counts, kind="stable")},
        too_rare_to_split=rare,
        too_rare_to_judge=thin,
        sizes=dict(zip(("smallest", "median", "largest"), quartiles, strict=True)),
        unreadable=unreadable,
        problems=problems,
        warnings=warnings,
    )


def _judge(
    table: Table, splits: dict[str, int], unreadable: dict[str, str], max_bad_share: float, rare: list[str]
) -> tuple[list[str], list[str]]:
    problems, warnings = [], []
    if splits and not splits.get("train"):
        problems.append("no image is in split 'train'")
    if splits and not splits.get("val"):
        problems.append("no image is in split 'val'; a model could not be judged")
    if not splits and len(table) < 2:
        problems.append("one image cannot be split into a part to learn from and a part to judge on")
    share = len(unreadable) / len(table)
    if share > max_bad_share:
        problems.append(
            f"{len(unreadable)} images ({share:.1%}) cannot be read, over the limit of {max_bad_share:.1%} "
            "(--set data.max_bad_share=…)"
        )
    elif unreadable:
        warnings.append(f"{len(unreadable)} images cannot be read and will be left out")
    one_sided = int(((table.matrix == ABSENT).sum(axis=0) == 0).sum())
    if one_sided == len(table.labels):
        problems.append("no label is absent anywhere; if blank cells mean absent: --set data.blank=absent")
    elif one_sided:
        warnings.append(f"{one_sided} labels are absent from no image: a model can only say yes to them")
    if rare:
        warnings.append(
            f"{len(rare)} labels have fewer than {TOO_RARE_TO_SPLIT} images: they cannot be learnt and judged"
        )
    if splits.get("train") and splits.get("val"):
        train = support(table.matrix[table.rows("train")])
        val = support(table.matrix[table.rows("val")])
        for gap, what in (((train == 0) & (val > 0), "training"), ((train > 0) & (val == 0), "validation")):
            missing = [table.labels.names[i] for i in np.flatnonzero(gap)]
            if missing:
                warnings.append(f"{len(missing)} labels have no {what} image: {', '.join(missing[:5])}")
    return problems, warnings


def _inspect_all(
    source: ImageSource, keys: list[str], workers: int
) -> Iterator[tuple[str, tuple[int, int] | None, str]]:
    chunks = (keys[i : i + CHUNK] for i in range(0, len(keys), CHUNK))
    work = partial(_inspect_chunk, source)
    if workers < 2 or len(keys) <= CHUNK:
        for chunk in chunks:
            yield from work(chunk)
        return
    with ProcessPoolExecutor(min(workers, os.cpu_count() or 1)) as pool:
        while wave := list(islice(chunks, 4 * workers)):  # a few at a time, so that memory stays flat
            for found in pool.map(work, wave):
                yield from found


def _inspect_chunk(source: ImageSource, keys: Iterable[str]) -> list[tuple[str, tuple[int, int] | None, str]]:
    return [_inspect(source, key) for key in keys]


def _inspect(source: ImageSource, key: str) -> tuple[str, tuple[int, int] | None, str]:
    try:
        facts = source.describe(key)
        source.read(key, at_least=SMALL_SIDE)
    except DecodeError as error:
        return key, None, str(error)
    return key, facts, ""
