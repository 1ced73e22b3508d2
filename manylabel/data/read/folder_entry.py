"""What an entry of a folder is, asked in a way that survives links that lead to themselves."""

from __future__ import annotations

import os


def is_folder(entry: os.DirEntry[str]) -> bool:
    """A folder or a link to one; asks the disk only about links."""
    try:
        return entry.is_dir()
    except OSError:
        return False
