"""The split that the name of a file or a folder tells."""

from __future__ import annotations

import re
from pathlib import Path

from manylabel.data.table import SPLITS

WORD = re.compile(rf"(?<![a-z])({'|'.join(SPLITS)})(?:[-_]?\d{{4}})?(?![a-z0-9])")  # with a year at most


def split_of(path: Path) -> str | None:
    """'instances_val2017.json' → 'val', 'valid/' → 'val'; None if it tells none, or two."""
    found = {SPLITS[word] for word in WORD.findall(path.stem.lower())}
    return found.pop() if len(found) == 1 else None
