"""Images that lie beside those of the table, but that the label file does not mention."""

from __future__ import annotations

import posixpath
from typing import Any

from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.data.walk import walk_images


def unlisted_images(table: Table, most: int = 20) -> dict[str, Any]:
    """How many there are, and the first few. Only in folders that hold images of the table: masks are elsewhere."""
    if not isinstance(table.source, FileSource):
        return {"count": 0, "first": []}
    listed = {posixpath.normpath(key.replace("\\", "/")) for key in table.keys.tolist()}
    folders = {posixpath.dirname(key) for key in listed}
    count = 0
    first: list[str] = []
    try:
        for key in walk_images(table.source.root):
            if posixpath.dirname(key) in folders and key not in listed:
                count += 1
                if len(first) < most:
                    first.append(key)
    except OSError:  # a folder that may not be looked into: what was found so far is still true
        pass
    return {"count": count, "first": first}
