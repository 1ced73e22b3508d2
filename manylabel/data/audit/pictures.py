"""Small pictures of the images that the page about the data shows."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterator

from manylabel.data.audit.result import Audit
from manylabel.data.table import Table
from manylabel.error import ManylabelError

SIDE = 160
GROUPS, PER_GROUP = 40, 6  # what the page shows of each kind
MOST = 400


def pictures(table: Table, findings: Audit) -> dict[str, str]:
    """Data URIs by image key: of duplicates, leaks, contradictions and suspicious images. Unreadable ones have none."""
    found: dict[str, str] = {}
    for key in _wanted(findings):
        if len(found) == MOST:
            break
        if key in found:
            continue
        try:
            image = table.source.read(key, at_least=SIDE)
        except (ManylabelError, OSError):  # it changed since it was checked
            continue
        image.thumbnail((SIDE, SIDE))
        data = io.BytesIO()
        image.save(data, "JPEG", quality=75)
        found[key] = f"data:image/jpeg;base64,{b64encode(data.getvalue()).decode('ascii')}"
    return found


def _wanted(findings: Audit) -> Iterator[str]:
    kinds: dict[str, int] = {}
    for entry in findings.suspicious["images"]:
        kinds[entry["kind"]] = kinds.get(entry["kind"], 0) + 1
        if kinds[entry["kind"]] <= GROUPS // 2:
            yield entry["image"]
    pairs, contradictions = findings.leaks["pairs"], findings.contradictions["groups"]
    for groups in (pairs, contradictions, findings.duplicates["groups"]):
        for group in groups[:GROUPS]:
            yield from group["images"][:PER_GROUP]
