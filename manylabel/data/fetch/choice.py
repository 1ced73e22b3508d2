"""Which Open Images to take: label names to identifiers, and a seeded choice from files of millions of rows."""

from __future__ import annotations

import csv
import hashlib
import heapq
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from manylabel.error import DataError
from manylabel.suggest import closest

HEADER = (b"ImageID", b"Source", b"LabelName", b"Confidence")
IMAGE_ID = re.compile(rb"[0-9A-Za-z_-]{1,64}")  # it becomes a file name and part of an address
EVERY = 100_000  # rows between two steps of the progress bar

Row = tuple[bytes, bytes, bytes, bytes]  # image, who verified it, label, confidence


def read_classes(path: Path) -> dict[str, str]:
    """Identifier → display name, with or without the header that came with V6."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    for number, row in enumerate(rows, 1):
        if len(row) != 2:
            raise DataError(f"{path}, row {number}: {len(row)} fields instead of identifier and name")
    return {mid: name for mid, name in rows if (mid, name) != ("LabelName", "DisplayName")}


def find_labels(names: Sequence[str], classes: Mapping[str, str]) -> dict[str, str]:
    """Identifier → display name of the labels asked for by name (any case) or by identifier, in the order asked."""
    by_name: dict[str, list[str]] = {}
    for mid, name in classes.items():
        by_name.setdefault(name.casefold(), []).append(mid)
    found: dict[str, str] = {}
    for name in names:
        mids = [name] if name in classes else by_name.get(name.casefold().strip(), [])
        exact = [mid for mid in mids if classes[mid] == name]
        mids = exact if len(exact) == 1 else mids
        if not mids:
            raise DataError(f"Open Images has no label {name!r}{closest(name, classes.values())}")
        if len(mids) > 1:
            raise DataError(f"{name!r} is the name of several labels of Open Images; give one of {', '.join(mids)}")
        found[mids[0]] = classes[mids[0]]
    return found


def candidates(
    path: Path, labels: Sequence[str], keep: int, seed: int, advance: Callable[[int], None]
) -> dict[str, list[str]]:
    """For each label up to `keep` images verified to show it, in a random order that only the seed decides.

    The order comes from a hash of the image's name, so it depends neither on the order of the file nor on `keep`.
    """
    heaps: dict[bytes, list[tuple[int, bytes]]] = {label.encode(): [] for label in labels}  # largest hash on top
    inside: dict[bytes, set[bytes]] = {label: set() for label in heaps}
    prefix = f"{seed}:".encode()
    for image, _, label, confidence in _rows(path, advance):
        heap = heaps.get(label)
        if heap is None or confidence != b"1" or image in inside[label]:
            continue
        item = (-int.from_bytes(hashlib.blake2b(prefix + image, digest_size=8).digest()), image)
        if len(heap) < keep:
            heapq.heappush(heap, item)
        elif item > heap[0]:
            inside[label].discard(heapq.heapreplace(heap, item)[1])
        else:
            continue
        inside[label].add(image)
    return {
        label.decode(): [_safe(path, image) for _, image in sorted(heap, reverse=True)] for label, heap in heaps.items()
    }


def _safe(path: Path, image: bytes) -> str:
    if not IMAGE_ID.fullmatch(image):
        raise DataError(f"{path} names an image {image!r}, which cannot be a file's name")
    return image.decode()


def rows_of(
    path: Path, images: set[str], labels: set[str] | None, advance: Callable[[int], None]
) -> Iterator[tuple[str, str, str, str]]:
    """The file's rows of these images, positives and negatives; of these labels only, unless None."""
    wanted = {image.encode() for image in images}
    chosen = None if labels is None else {label.encode() for label in labels}
    for image, source, label, confidence in _rows(path, advance):
        if image in wanted and (chosen is None or label in chosen):
            yield image.decode(), source.decode(), label.decode(), confidence.decode()


def _rows(path: Path, advance: Callable[[int], None]) -> Iterator[Row]:
    """Streams the file; a row that is not four fields is named."""
    with open(path, "rb") as file:
        if tuple(file.readline().strip().split(b",")) != HEADER:
            raise DataError(f"{path} does not begin with {b','.join(HEADER).decode()}; it is not a label file")
        size = file.tell()
        for number, line in enumerate(file, 2):
            try:
                image, source, label, confidence = line.split(b",")
            except ValueError:
                raise DataError(f"{path}, row {number}: not the four fields of a label file") from None
            yield image, source, label, confidence.rstrip()
            size += len(line)
            if number % EVERY == 0:
                advance(size)
                size = 0
        advance(size)
