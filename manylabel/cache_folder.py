"""Where things are kept that can be computed again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """`MANYLABEL_CACHE`, or manylabel's place in the user's cache folder."""
    given = os.environ.get("MANYLABEL_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "manylabel"
