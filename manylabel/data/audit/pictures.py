"""Small pictures of the images that the page about the data shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from manylabel.data.audit.result import Audit
from manylabel.data.table import Table
from manylabel.data.thumbnail import thumbnail

SIDE = 160
GROUPS, PER_GROUP = 40, 6  # what the page shows of each kind
MOST = 400


def pictures(table: Table, findings: Audit) -> dict[str, str]:
    """Data URIs by image key: of duplicates, leaks, contradictions and suspicious images. Unreadable ones have none."""
    found: dict[str, str] = {}
    for key in _wanted(findings):
        if len(found) < MOST and key not in found and (made := thumbnail(table.source, key, SIDE)) is not None:
            found[key] = made
    return found


def _wanted(findings: Audit) -> Iterator[str]:
    kinds: Counter[str] = Counter()
    for entry in findings.suspicious["images"]:
        kinds[entry["kind"]] += 1
        if kinds[entry["kind"]] <= GROUPS // 2:
            yield entry["image"]
    pairs, contradictions = findings.leaks["pairs"], findings.contradictions["groups"]
    for groups in (pairs, contradictions, findings.duplicates["groups"]):
        for group in groups[:GROUPS]:
            yield from group["images"][:PER_GROUP]
