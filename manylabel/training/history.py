"""metrics.jsonl: one line per epoch, always written, never twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from manylabel.atomic import write_text


class History:
    """Lines so far; a resumed run drops those that come after its checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, Any]] = read_history(path)

    def forget_after(self, epochs: int) -> None:
        self.rows = [row for row in self.rows if row["epoch"] <= epochs]
        write_text(
            self.path, "".join(json.dumps(row) + "\n" for row in self.rows)
        )  # a line cut off by a kill goes, too

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def read_history(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a metrics.jsonl; a last line cut off by a kill is left out."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows
