"""Which images train, where the data does not say; of several tasks together, for an image is in one part for all of them.

Images are the same by their content (`same_images`). What a user's data says of them stands: of an image that one task has
in val or test and another in train, the other leaves it out. Where data says nothing, its images follow what another task's
data says of them; what is then left is split once, by the labels of all tasks that have it. Groups stay together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from manylabel import console
from manylabel.config import Config, has_one_task
from manylabel.data.connected import connected
from manylabel.data.same_images import same_images
from manylabel.data.split import joined_groups, train_val_split
from manylabel.data.table import Table
from manylabel.error import ConfigError, DataError
from manylabel.labels import PRESENT, UNKNOWN
from manylabel.run.folder import read_split
from manylabel.stop import StopRequest
from manylabel.task.wording import in_words_of

OPEN = ""  # the part of an image of which nothing is said


@dataclass(frozen=True)
class SplitTable:
    """A table with the part of every image."""

    table: Table
    new: dict[str, str]  # the split that was made here, if the data had none


def kept_split(folder: Path, table: Table) -> np.ndarray | None:
    """The split that this run made before it was stopped."""
    kept = read_split(folder, table)
    if kept is not None and (kept == "").any():
        new = table.keys[kept == ""]
        raise DataError(f"{len(new)} images were added since this run began, first {new[0]}; start a new one")
    return kept


def split_tables(
    config: Config, tables: Mapping[str, Table], kept: Mapping[str, np.ndarray], stop: StopRequest | None = None
) -> dict[str, SplitTable]:
    """`kept`: splits of tasks that this run has made before."""
    several, names = not has_one_task(config), list(tables)
    given = {name: kept.get(name, table.split) for name, table in tables.items()}
    parts = {name: _told(given[name], len(table)) for name, table in tables.items()}
    made = [name for name in names if (parts[name] == OPEN).any()]
    same = dict(zip(names, same_images(list(tables.values()), stop), strict=True)) if len(names) > 1 else {}
    if same:
        _follow(tables, parts, same)
    for members in _that_share(made, parts, same):
        _draw(config, members, tables, parts, same)
    found = {}
    for name, table in tables.items():
        with in_words_of(name, several):
            if name in made:
                _check(table, parts[name], same)
            split = replace(table, split=parts[name])
            new = dict(zip(table.keys.tolist(), parts[name].tolist(), strict=True)) if name in made else {}
            others = [other for other in names if other != name and other not in kept]
            if same and name not in kept:
                split = _without_judged(split, same[name], [same[other][parts[other] != "train"] for other in others])
            found[name] = SplitTable(split, new)
    return found


def _told(split: np.ndarray | None, images: int) -> np.ndarray:
    """What data says of its images: of those that it would train on nothing, if it has none to evaluate on."""
    if split is None:
        return np.full(images, OPEN, "<U5")
    return split.astype("<U5") if "val" in split else np.where(split == "train", OPEN, split).astype("<U5")


def _follow(tables: Mapping[str, Table], parts: dict[str, np.ndarray], same: Mapping[str, np.ndarray]) -> None:
    """Open images are where other tasks have them, or images of their group: to test rather than val rather than train."""
    count = 1 + max(int(ids.max()) for ids in same.values())
    groups = _groups(tables, {name: np.arange(len(t)) for name, t in tables.items()}, same, count)
    place = np.arange(count) if groups is None else groups
    fixed = np.full(count, OPEN, "<U5")
    for part in ("train", "val", "test"):
        for name, own in parts.items():
            fixed[place[same[name][own == part]]] = part
    for name, own in parts.items():
        parts[name] = np.where(own == OPEN, fixed[place[same[name]]], own)


def _that_share(
    made: Sequence[str], parts: Mapping[str, np.ndarray], same: Mapping[str, np.ndarray]
) -> list[list[str]]:
    """Tasks with open images, those together that have some in common."""
    left = [name for name in made if (parts[name] == OPEN).any()]
    rest = [same[name][parts[name] == OPEN] if same else np.empty(0) for name in left]
    pairs = [(a, b) for a in range(len(left)) for b in range(a) if np.isin(rest[a], rest[b]).any()]
    group = connected(len(left), np.array(pairs, np.int64).reshape(-1, 2)) if left else np.empty(0)
    return [[left[i] for i in np.flatnonzero(group == number)] for number in np.unique(group)]


def _draw(
    config: Config,
    members: Sequence[str],
    tables: Mapping[str, Table],
    parts: dict[str, np.ndarray],
    same: Mapping[str, np.ndarray],
) -> None:
    """One stratified split of the open images of these tasks."""
    shares = {name: config.tasks[name].data.validation_share for name in members}
    if len(set(shares.values())) > 1:
        said = ", ".join(f"tasks.{name}.data.validation_share={share:g}" for name, share in shares.items())
        raise ConfigError(
            f"these tasks have images in common, which are split once, so their shares must be the same: {said}"
        )
    share = shares[members[0]]
    rows = {name: np.flatnonzero(parts[name] == OPEN) for name in members}
    ids = {name: same[name][rows[name]] if same else rows[name] for name in members}
    every = np.unique(np.concatenate(list(ids.values())))
    place = {name: np.searchsorted(every, ids[name]) for name in members}
    columns = []
    for name in members:
        matrix = np.full((len(every), tables[name].matrix.shape[1]), UNKNOWN, np.int8)
        matrix[place[name]] = tables[name].matrix[rows[name]]
        columns.append(matrix)
        if len(ids[name]) < len(every):  # having the task at all is one more label
            columns.append(np.full((len(every), 1), UNKNOWN, np.int8))
            columns[-1][place[name]] = PRESENT
    groups = _groups({name: tables[name] for name in members}, rows, place, len(every))
    drawn = train_val_split(np.concatenate(columns, axis=1), share, config.train.seed, groups)
    for name in members:
        parts[name][rows[name]] = drawn[place[name]]
        _say(tables[name], drawn[place[name]], share, len(members) > 1)


def _groups(
    tables: Mapping[str, Table], rows: Mapping[str, np.ndarray], place: Mapping[str, np.ndarray], count: int
) -> np.ndarray | None:
    """The groups of all tables over `count` images, of which rows[name] are at place[name]."""
    found = []
    for name, table in tables.items():
        if table.groups is not None:
            labelling = np.full(count, "", object)
            labelling[place[name]] = table.groups[rows[name]]
            found.append(labelling)
    return joined_groups(*found)


def _say(table: Table, parts: np.ndarray, share: float, together: bool) -> None:
    held = (parts == "val").mean()
    why = "" if abs(held - share) < 0.02 else f" instead of {share:.0%}, so that rare labels are on both sides"
    kept_together = "" if table.groups is None else ", groups kept together"
    for_all = ", once for all tasks that have them" if together else ""
    of_what = "no split column, so" if table.split is None else "no split 'val', so of the training images"
    console.say(f"{table.name}: {of_what} {held:.0%} are held out (stratified{kept_together}{for_all}){why}")


def _check(table: Table, parts: np.ndarray, same: Mapping[str, np.ndarray]) -> None:
    """Images that follow another task's data may leave nothing for one of the parts."""
    for part, purpose in (("train", "learn from"), ("val", "evaluate on")) if same else ():
        if not (parts == part).any():
            raise DataError(
                f"all images of {table.name} are in the split of another task's data, which leaves none to {purpose}; give "
                "this data a split of its own (data.split_file), or further images"
            )


def _without_judged(table: Table, ids: np.ndarray, judged: Sequence[np.ndarray]) -> Table:
    """Without training images that are val or test images of other tasks."""
    assert table.split is not None
    seen = np.isin(ids, np.concatenate([*judged, np.empty(0, np.int64)]))
    left_out = seen & (table.split == "train")
    if not left_out.any():
        return table
    train = int((table.split == "train").sum())
    if left_out.sum() == train:
        raise DataError(
            f"all {train} training images of {table.name} are val or test images of other tasks, so none may be learned; "
            "give the tasks one split"
        )
    console.warn(
        f"{table.name}: {left_out.sum()} of {train} training images are val or test images of another task; they are left "
        "out of training"
    )
    return table.subset(np.flatnonzero(~left_out))
