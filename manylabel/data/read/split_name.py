"""The split that the name of a file, a folder or a shard tells."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from manylabel.data.table import SPLITS

WORD = re.compile(rf"(?<![a-z])({'|'.join(SPLITS)})(?:[-_]?\d{{4}})?(?![a-z0-9])")  # with a year at most


def split_of(path: Path) -> str | None:
    """'instances_val2017.json' → 'val', 'valid/' → 'val'; None if it tells none, or two."""
    found = {SPLITS[word] for word in WORD.findall(path.stem.lower())}
    return found.pop() if len(found) == 1 else None


def split_of_shard(name: str) -> str | None:
    """'train' of 'train-00000-of-00012' or 'train/0000': a file's own name counts before its folders'."""
    parts = (Path(f"{part}.shard") for part in reversed(name.split("/")))  # a suffix, for names have dots, too
    return next((split for part in parts if (split := split_of(part))), None)


def splits_of_shards(names: Iterable[str], notes: list[str]) -> list[str | None]:
    """The split of each; of data that has nothing but a training part, none, so that some of it is held out."""
    found = [split_of_shard(name) for name in names]
    told = {split for split in found if split is not None}
    if told == {"train"}:
        return [None] * len(found)
    if told:
        counts = ((found.count(split), split or "none") for split in ("train", "val", "test", None) if split in found)
        notes.append(f"splits from the names of the shards: {', '.join(f'{n} {split}' for n, split in counts)}")
    return found
