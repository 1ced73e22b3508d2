"""Images that are there more than once: byte for byte, or near enough (rescaled, recompressed, brighter).

Near duplicates are searched among hashes of 64 bits without comparing all pairs. The hash is cut into four bands of
16 bits: two hashes that differ in at most 7 bits agree in some band up to one bit, so that only the images in the same
or a neighbouring bucket of a band need to be compared. Thumbnails then confirm what the hashes suggest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from manylabel.data.audit.inspection import Inspection
from manylabel.data.audit.perceptual import likeness
from manylabel.data.connected import connected

BANDS, BAND_BITS = 4, 16
DISTANCE = 2 * BANDS - 1  # if more than this many bits differ, two or more may differ in every band
ALIKE = (
    0.9  # correlation of the edges of thumbnails: copies of photos have over 0.95, others with like hashes under 0.6
)
BLANK = 2.5  # deviation of the grey values below which an image shows nothing, so that its hash means nothing
MOST_IN_BUCKET = 2048  # more images than this in one bucket are not all compared
AT_ONCE = 1 << 22  # pairs compared together


@dataclass(frozen=True)
class Duplicates:
    """Which images are the same. Near pairs are between the first images of two exact groups."""

    exact: np.ndarray  # [n] number of the first row with the same content (its own row if there is none)
    near: np.ndarray  # [pairs, 2] row numbers, the smaller first
    distance: np.ndarray  # [pairs] bits by which the hashes differ
    group: np.ndarray  # [n] number of the first row of everything that hangs together
    not_compared: int  # images left out where too many look alike


def find_duplicates(inspection: Inspection) -> Duplicates:
    """All exact duplicates, and the near duplicates among images that show something."""
    exact = _same_content(inspection)
    facts = inspection.facts
    rows = np.arange(len(facts))
    candidates = np.flatnonzero((exact == rows) & inspection.readable & (facts["deviation"] >= BLANK))
    pairs, left_out = near_pairs(facts["look"][candidates])
    pairs = candidates[pairs]
    pairs = pairs[confirmed(facts["thumbnail"], facts["thumbnail"], pairs)]
    distance = np.bitwise_count(facts["look"][pairs[:, 0]] ^ facts["look"][pairs[:, 1]])
    group = connected(len(facts), np.concatenate([pairs, np.stack([exact, rows], axis=1)]))
    return Duplicates(exact, pairs, distance, group, left_out)


def near_pairs(hashes: np.ndarray) -> tuple[np.ndarray, int]:
    """Pairs (i, j), i < j, of hashes that differ in at most DISTANCE bits, and how many were left out of the search.

    [n] uint64 → [pairs, 2] int64, sorted
    """
    found, left_out = _search(hashes, hashes)
    return np.unique(np.sort(found, axis=1), axis=0), left_out


def near_pairs_between(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The same for pairs (i, j) of a hash of one set and a hash of another. [n], [m] uint64 → [pairs, 2] int64"""
    return np.unique(_search(first, second)[0], axis=0)


def _search(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, int]:
    """Pairs of hashes, once or more often each, and how many of the second set were left out."""
    found = [np.zeros((0, 2), np.int64)]
    left_out = 0
    for band in range(BANDS):
        ours = _Buckets.of(first, band)
        theirs = ours if first is second else _Buckets.of(second, band)
        left_out = max(left_out, theirs.left_out)
        for i, j in _neighbours(ours, theirs):
            close = np.bitwise_count(first[i] ^ second[j]) <= DISTANCE
            found.append(np.stack([i[close], j[close]], axis=1))
    return np.concatenate(found), left_out


@dataclass(frozen=True)
class _Buckets:
    """Hashes sorted by one band of their bits."""

    order: np.ndarray  # [n] row numbers, bucket after bucket
    starts: np.ndarray  # [2**BAND_BITS] where each bucket begins in `order`
    counts: np.ndarray  # [2**BAND_BITS] images of a bucket that are compared
    left_out: int

    @classmethod
    def of(cls, hashes: np.ndarray, band: int) -> _Buckets:
        keys = (hashes.astype(np.uint64) >> np.uint64(band * BAND_BITS)) & np.uint64((1 << BAND_BITS) - 1)
        counts = np.bincount(keys.astype(np.int64), minlength=1 << BAND_BITS)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        left_out = int(np.maximum(counts - MOST_IN_BUCKET, 0).sum())
        return cls(np.argsort(keys, kind="stable"), starts, np.minimum(counts, MOST_IN_BUCKET), left_out)

    def row(self, bucket: np.ndarray, place: np.ndarray) -> np.ndarray:
        return self.order[self.starts[bucket] + place]


def _neighbours(ours: _Buckets, theirs: _Buckets) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of images whose keys are the same or differ in one bit, some millions at a time."""
    buckets = np.flatnonzero(ours.counts)
    for mask in (0, *(1 << bit for bit in range(BAND_BITS))):
        others = buckets ^ mask
        wanted = theirs.counts[others] > 0
        if ours is theirs:  # each pair once, and none of an image with itself
            wanted &= (others > buckets) if mask else (ours.counts[buckets] > 1)
        yield from _products(ours, theirs, buckets[wanted], others[wanted])


def _products(
    ours: _Buckets, theirs: _Buckets, a: np.ndarray, b: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every image of our bucket a[k] with every one of their bucket b[k]; where both are one bucket, each pair once."""
    sizes = ours.counts[a] * theirs.counts[b]
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(a):
        before = ends[begin] - sizes[begin]
        end = max(begin + 1, int(np.searchsorted(ends, before + AT_ONCE, side="right")))
        which = np.repeat(np.arange(begin, end), sizes[begin:end])
        within = np.arange(len(which)) - (ends[which] - sizes[which] - before)
        row, column = np.divmod(within, theirs.counts[b[which]])
        if ours is theirs:
            once = (a[which] != b[which]) | (row < column)
            which, row, column = which[once], row[once], column[once]
        yield ours.row(a[which], row), theirs.row(b[which], column)
        begin = end


def confirmed(first: np.ndarray, second: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Which pairs of a thumbnail of one set and one of another are the same picture. [pairs] bool"""
    sure = np.zeros(len(pairs), bool)
    for start in range(0, len(pairs), 4096):
        some = pairs[start : start + 4096]
        sure[start : start + 4096] = likeness(first[some[:, 0]], second[some[:, 1]]) >= ALIKE
    return sure


def _same_content(inspection: Inspection) -> np.ndarray:
    """The first row with the same bytes. [n]"""
    content = np.ascontiguousarray(inspection.facts["content"]).view("V16").ravel()
    _, first, inverse = np.unique(content, return_index=True, return_inverse=True)
    rows = np.arange(len(content))
    return np.where(inspection.readable, first[inverse.ravel()], rows)


def members(groups: np.ndarray) -> dict[int, np.ndarray]:
    """Rows of each group that has more than one, by its first row. [n] → lists"""
    order = np.argsort(groups, kind="stable")
    first, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    several = sizes > 1
    bounds = zip(first[several].tolist(), starts[several].tolist(), sizes[several].tolist(), strict=True)
    return {group: order[start : start + size] for group, start, size in bounds}
