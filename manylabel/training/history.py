"""metrics.jsonl: one line for each epoch, or for some steps; always written, never twice."""

from __future__ import annotations

from pathlib import Path

from manylabel.core.results import HistoryRow
from manylabel.error import DataError
from manylabel.storage.atomic import append_text, write_text
from manylabel.storage.json_lines import read_rows, row_text


class History:
    """Lines so far; a resumed run drops those that come after its checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[HistoryRow] = read_history(path)

    def forget_after(self, step: int) -> None:
        self.rows = [row for row in self.rows if step_of(row) <= step]
        write_text(self.path, "".join(map(row_text, self.rows)))  # a line cut off by a kill goes, too

    def add(self, row: HistoryRow) -> None:
        self.rows.append(row)
        append_text(self.path, row_text(row))


def step_of(row: HistoryRow) -> float:
    """After which change of the weights it was written; earlier versions told it in two ways."""
    step: float = row["step"] if "step" in row else row["epoch"]
    return step


def read_history(path: Path) -> list[HistoryRow]:
    """The whole lines of a metrics.jsonl; a last line cut off by a kill is left out."""
    rows = read_rows(path) if path.exists() else []
    for number, row in enumerate(rows, 1):
        if isinstance(row.get("epoch"), bool) or not isinstance(row.get("epoch"), (int, float)):
            raise DataError(f"{path}, row {number}: 'epoch' must be a number, not {row.get('epoch')!r:.40}")
    return rows
