"""Several readings as one: a label file for each split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from manylabel.data.record import Reading, Record
from manylabel.data.source import FileSource
from manylabel.error import DataError


def joined(path: Path, parts: Sequence[tuple[str, Reading]]) -> Reading:
    """The records of (split, reading) pairs one after the other, under the folder `path` that holds them all.

    A split that a record names itself wins. The readings must agree on what they mean.
    """
    first = parts[0][1]
    for _, reading in parts[1:]:
        if reading.rest != first.rest or reading.labels != first.labels:
            raise DataError(
                f"{first.path} and {reading.path} have different columns; make them alike, or name one file"
            )
    roots = {str(split): _root(reading) for split, reading in parts}
    outside = [root for root in roots.values() if path not in (root, *root.parents)]
    home = outside[0] if outside else path
    if len(set(roots.values())) > 1 and outside:
        raise DataError(f"the images of {first.path} and the others lie in different places; name one file")

    def records() -> Iterator[Record]:
        for split, reading in parts:
            folder = _root(reading).relative_to(home).as_posix()
            prefix = "" if folder == "." else f"{folder}/"
            for record in reading.records():
                own = record.split if record.split is not None else split
                yield replace(record, key=f"{prefix}{record.key}", split=own)

    return replace(
        first,
        path=path,
        source=FileSource(home),
        records=records,
        total=sum(reading.total or 0 for _, reading in parts),
        notes=list(dict.fromkeys(chain.from_iterable(reading.notes for _, reading in parts))),
    )


def _root(reading: Reading) -> Path:
    assert isinstance(reading.source, FileSource)
    return reading.source.root
