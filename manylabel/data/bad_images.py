"""Images that could not be read: each listed once with its reason, and a stop when there are too many."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable
from pathlib import Path

from manylabel.error import DataError
from manylabel.spreadsheet import safe_cell, sheet_writer
from manylabel.storage.plain_file import MB, read_text
from manylabel.storage.receipt import write_ours

FILE_NAME = "bad_images.csv"
LARGEST = 256 * MB


class BadImages:
    """Collects reasons by image key. An unreadable image is dropped; it is never replaced by another one."""

    def __init__(self, total: int, max_share: float, out: Path | None = None) -> None:
        self.total = total
        self.max_share = max_share
        self.out = out
        self.reasons: dict[str, str] = {}

    def recall(self) -> None:
        """Take up the list that an earlier part of this run wrote."""
        if self.out and os.path.lexists(self.out):
            rows = csv.DictReader(io.StringIO(read_text(self.out, LARGEST), newline=""))
            try:
                self.reasons = {row["file_name"].removeprefix("'"): row["reason"] for row in rows}
            except (KeyError, AttributeError, csv.Error) as error:
                raise DataError(f"{self.out}, row {rows.line_num}: not file_name,reason; delete it") from error

    def __len__(self) -> int:
        return len(self.reasons)

    def add(self, found: Iterable[tuple[str, str]]) -> None:
        """Note (key, reason) pairs; raises DataError when the share of bad images passes the limit."""
        before = len(self)
        for key, reason in found:
            self.reasons.setdefault(key, reason)
        if len(self) == before:
            return
        if self.out:
            self.write(self.out)
        if len(self) > self.max_share * self.total:
            key, reason = next(iter(self.reasons.items()))
            where = f"; all are listed in {self.out}" if self.out else ""
            raise DataError(
                f"{len(self)} of {self.total} images cannot be read, over the limit of {self.max_share:.1%} "
                f"(first: {key}: {reason}){where}. Mend them, or allow more with "
                f"--set data.max_bad_share={_above(len(self) / self.total):g}"
            )

    def write(self, path: Path) -> None:
        text = io.StringIO()
        rows = sheet_writer(text)
        rows.writerow(["file_name", "reason"])
        rows.writerows((safe_cell(key), safe_cell(reason)) for key, reason in self.reasons.items())
        write_ours(path, text.getvalue())


def _above(share: float) -> float:
    """A round number above a share."""
    return min(1.0, math.ceil(100 * share + 1) / 100)
