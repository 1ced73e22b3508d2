"""docs/parts.md has a row for every part that a recipe can name, and for no other."""

from __future__ import annotations

from doc_blocks import HERE, table_rows

from manylabel.detect import DETECTORS
from manylabel.head import HEADS
from manylabel.loss import LOSSES
from manylabel.neck import NECKS
from manylabel.task import KINDS
from manylabel.text import EMBEDDERS


def test_every_part_has_a_row() -> None:
    rows = table_rows((HERE / "docs" / "parts.md").read_text(encoding="utf-8"), "name")
    parts = [f"`{room.kind}.name={name}`" for room in (HEADS, NECKS, LOSSES, EMBEDDERS) for name in room.names()]
    parts += [f"`head.name={name}`" for name in DETECTORS.names()] + [f"`kind={name}`" for name in KINDS]
    assert sorted(rows) == sorted(parts)
