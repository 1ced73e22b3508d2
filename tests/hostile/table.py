"""What came of a trial: a table of tried and survived, and the list of those that did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hostile.fate import SURVIVED

BEGIN, END = "<!-- hostile trial: begin -->", "<!-- hostile trial: end -->"
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


@dataclass(frozen=True)
class Verdict:
    """How one case ended."""

    category: str
    name: str
    fate: str
    reason: str = ""
    seconds: float = 0.0

    @property
    def survived(self) -> bool:
        return self.fate == SURVIVED


def markdown(verdicts: Sequence[Verdict]) -> str:
    rows = ["| category | tried | survived |", "|---|---:|---:|"]
    for category in dict.fromkeys(one.category for one in verdicts):
        of_it = [one for one in verdicts if one.category == category]
        rows.append(f"| {category} | {len(of_it)} | {sum(one.survived for one in of_it)} |")
    rows.append(f"| **all** | **{len(verdicts)}** | **{sum(one.survived for one in verdicts)}** |")
    return "\n".join(rows) + "\n"


def failures(verdicts: Sequence[Verdict]) -> str:
    lines = [f"{one.category}/{one.name}: {one.fate}: {one.reason}" for one in verdicts if not one.survived]
    return "\n".join(lines) + ("\n" if lines else "")


def write_into(page: Path, table: str) -> None:
    """Between the two marks of the page."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} lacks {BEGIN} or {END}")
    page.write_text(f"{before}{begin}\n{table}{end}{after}", encoding="utf-8")
