"""Every table that a test reads, as facts, compared with those of the same test in frozen/tables.json.

A change of a reader that changes what any test's data mean is seen, also where that test asserts something else. A
test that is not in the file yet is only warned of, so that nobody must freeze before he can try a new test; one that
has gone, or has another name now, fails test_tables.py. `make freeze` writes the file anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.data import read
from manylabel.data.table import Table

FILE = Path(__file__).parent / "frozen" / "tables.json"
ROOT = FILE.parents[3]
SHARED_FACTS = FILE.with_name("shared.json")  # of the real samples beside the repository
ANEW = os.environ.get("MANYLABEL_FREEZE") == "tables"
LARGE = 200_000  # rows: of such tables only the parts that cost nothing


def facts(table: Table, where: str = "") -> dict[str, Any]:
    """What a table says, part by part; `where` is a folder of this run, whose name means nothing."""
    found: dict[str, Any] = {
        "images": len(table),
        "labels": len(table.labels),
        "present": int((table.matrix == 1).sum()),
        "unknown": int((table.matrix == -1).sum()),
        "notes": sorted({fact for note in table.notes for fact in _said(_without(note, where))}),
        "keys": _digest(_without(str(key), where) for key in table.keys),
        "names": _digest(table.labels.names),
        "matrix": _digest([np.ascontiguousarray(table.matrix, np.int8).tobytes().hex()]),
    }
    if table.split is not None:
        found["split"] = _digest(map(str, table.split))
    if table.groups is not None:
        found["groups"] = _digest(map(str, table.groups))
    if table.sizes is not None:
        found["sizes"] = _digest(map(str, np.asarray(table.sizes).tolist()))
    if table.hierarchy is not None:
        found["hierarchy"] = _digest(
            f"{name} {sorted(vars(table.hierarchy.facts[name]).items())}" for name in table.labels
        )
    if table.objects is not None:
        o = table.objects
        columns = zip(o.row.tolist(), o.label.tolist(), o.box.tolist(), o.crowd, o.difficult, strict=True)
        found["objects"] = _digest(f"{r} {k} {[round(x, 2) for x in b]} {int(c)}{int(d)}" for r, k, b, c, d in columns)
        found["masks"] = [len(o), sum(mask is not None for mask in o.masks)]
    return found


def pixels_of_masks(table: Table) -> str:
    """A digest of every mask, drawn; slow."""
    assert table.objects is not None
    parts = []
    for row, mask in zip(table.objects.row.tolist(), table.objects.masks, strict=True):
        if mask is not None:
            width, height = table.source.read(str(table.keys[row])).size
            parts.append(hashlib.sha256(np.packbits(mask.pixels(height, width) > 0).tobytes()).hexdigest())
    return _digest(parts)


def _said(note: str) -> list[str]:
    """Numbers and quoted names of a note: its wording may change, what it tells may not."""
    return re.findall(r"'[^']*'|\d[\d.,]*\d|\d", note)


def _without(text: str, where: str) -> str:
    return re.sub(re.escape(where) + r"/[^/\s]+", "HERE", text) if where else text


def _digest(values: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(values).encode("utf-8", "surrogateescape")).hexdigest()[:12]


class Watch:
    """Keeps the facts of all tables that are read while a test runs."""

    def __init__(self, file: Path = FILE, root: Path = ROOT) -> None:
        self.file, self.root = file, root
        self.seen: list[dict[str, Any]] = []
        self.where = ""
        self.frozen: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        self.anew: dict[str, Any] = {}
        self.collected: set[str] = set()  # of files of which all tests were

    def install(self) -> None:
        """Around the one door through which data come in, before anybody has taken hold of it."""
        door: Callable[..., Table] = read.read_table

        def watched(config: Any) -> Table:
            table = door(config)
            if len(table) < LARGE:
                self.seen.append(facts(table, self.where))
            return table

        read.read_table = watched

    def begin(self, where: str) -> None:
        self.seen, self.where = [], where

    def keep(self, test: str) -> None:
        """These are this test's tables from now on."""
        self.anew[test] = list(self.seen)  # fixtures of the next test go on reading

    def is_new(self, test: str) -> bool:
        """Whether it reads tables that nobody has frozen yet."""
        return bool(self.seen) and test not in self.frozen

    def differences(self, test: str) -> list[str]:
        """What this test's tables say otherwise than they did, and whether it reads as many."""
        if test not in self.frozen:
            return []
        told, found = self.frozen[test], []
        if len(told) != len(self.seen):
            found.append(f"this test read {len(told)} tables and reads {len(self.seen)} now")
        for number, (was, now) in enumerate(zip(told, self.seen, strict=False), 1):
            parts = [
                f"{part}: {was.get(part)} → {now.get(part)}" for part in was | now if was.get(part) != now.get(part)
            ]
            found += [f"table {number} of this test, {each}" for each in parts]
        return found

    def gone(self) -> list[str]:
        """Frozen tests that are no more, as far as this run can tell: it may have looked into some files only."""
        whole = {test.split("::")[0] for test in self.collected}
        files = {test: test.split("::")[0] for test in self.frozen}
        return [
            test
            for test, file in files.items()
            if not (self.root / file).is_file() or (file in whole and test not in self.collected)
        ]

    def write(self) -> None:
        """What this run has seen, in place of what was told of the same tests, and without those that are gone."""
        told = {test: tables for test, tables in (self.frozen | self.anew).items() if tables}
        for test in self.gone():
            told.pop(test, None)
        text = json.dumps(told, indent=0, ensure_ascii=False, sort_keys=True)
        self.file.write_text(text + "\n", encoding="utf-8")
