"""What `manylabel data check` prints: one screen of facts, then what to look at; the rest is in the JSON and the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from manylabel.runtime.rich_console import Terminal

SHOWN = 5
MOST_LINES = 12  # of warnings


def print_audit(findings: Any, notes: tuple[str, ...]) -> None:
    out = Terminal()
    table = Table(title=Text(findings.name), show_header=False)
    for name, value in _rows(findings):
        table.add_row(name, Text(value))  # a label like [red] is a label, not a colour
    out.print(table)
    unreadable = [f"{key}: {reason}" for key, reason in list(findings.unreadable.items())[:SHOWN]]
    for line in [*notes, *unreadable]:
        out.print(f"  · {line}", soft_wrap=True)
    for line in findings.warnings[:MOST_LINES]:
        out.print(f"  ! {line}", soft_wrap=True)
    if len(findings.warnings) > MOST_LINES:
        out.print(f"  ! and {len(findings.warnings) - MOST_LINES} more")
    for line in findings.problems:
        out.print(f"  ✗ {line}", soft_wrap=True)
    out.print("trainable" if findings.trainable else "not trainable as it is")


def _rows(findings: Any) -> Iterator[tuple[str, str]]:
    support = list(findings.support.items())
    sizes, copies, company = findings.image_sizes, findings.duplicates, findings.cooccurrence
    yield "images", f"{findings.images:,}"
    yield "splits", ", ".join(f"{count:,} {name}" for name, count in findings.splits.items()) or "none given"
    yield "labels", f"{findings.labels:,}"
    empty = findings.images_without_labels
    yield "labels per image", f"{findings.labels_per_image:.2f}" + (f"; {empty:,} images have none" if empty else "")
    if findings.unknown_share:
        yield "unknown entries", f"{findings.unknown_share:.1%}"
    yield "most frequent", _listed(f"{name} {count:,}" for name, count in support[:SHOWN])
    yield "rarest", _listed(f"{name} {count:,}" for name, count in support[-SHOWN:])
    yield "fewer than 10 images", str(len(findings.too_rare_to_judge) + len(findings.too_rare_to_split))
    if company["implied"]:
        pairs = (f"{pair['label']} → {pair['with']}" for pair in company["implied"][:3])
        yield "nearly always together", f"{company['implied_count']:,} pairs: {_listed(pairs)}"
    for name, side in (("short side", sizes["short_side"]), ("long side", sizes["long_side"])):
        yield f"{name} in pixels", " / ".join(str(v) for v in side.values()) + " (smallest / median / largest)"
    yield "formats", _listed(f"{name} {count:,}" for name, count in sizes["formats"].items())
    yield "copies", f"{copies['exact_copies']:,} exact, {copies['near_copies']:,} near"
    if findings.splits:
        yield "same picture in two splits", f"{findings.leaks['count']:,} pairs"
    yield "suspicious", _listed(f"{count:,} {kind}" for kind, count in findings.suspicious["kinds"].items()) or "none"
    yield "unreadable", f"{len(findings.unreadable):,}"


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)
