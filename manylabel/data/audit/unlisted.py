"""Images that lie beside those of the table, but that no label file mentions."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from itertools import islice
from typing import Any

from manylabel.data.audit.image import digest
from manylabel.data.audit.inspection import Inspection
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.data.walk import walk_images
from manylabel.error import DataError

COMPARED = 1000  # images whose content is looked at


def unlisted_images(table: Table, inspection: Inspection, most: int = 20) -> dict[str, Any]:
    """How many there are, and the first few. Only in folders that hold images of the table: masks are elsewhere.

    A copy of an image of the table is not one: where folders are labels, copies are merged into one row. If all that are
    compared are such copies, so are the others.
    """
    if not isinstance(table.source, FileSource):
        return {"count": 0, "first": []}
    others = _beside(table, table.source)
    known = _Known(inspection)
    compared = list(islice(others, COMPARED))
    new = [key for key in compared if not known.has(table.source, key)]
    count = len(new)
    if new:
        for key in others:
            count += 1
            if len(new) < most:
                new.append(key)
    return {"count": count, "first": new[:most]}


def _beside(table: Table, source: FileSource) -> Iterator[str]:
    listed = {posixpath.normpath(key.replace("\\", "/")) for key in table.keys.tolist()}
    folders = {posixpath.dirname(key) for key in listed}
    try:
        for key in walk_images(source.root):
            if posixpath.dirname(key) in folders and key not in listed:
                yield key
    except (OSError, DataError):  # a folder that may not be looked into: what was found so far is still true
        return


class _Known:
    """The contents of a table's images, asked first by their length, which needs no reading."""

    def __init__(self, inspection: Inspection) -> None:
        facts = inspection.facts[inspection.readable]
        self._lengths = set(facts["bytes"].tolist())
        self._contents = {content.tobytes() for content in facts["content"]}

    def has(self, source: FileSource, key: str) -> bool:
        try:
            return (
                source.path(key).stat().st_size in self._lengths and digest(source.raw(key)).tobytes() in self._contents
            )
        except OSError:
            return False
