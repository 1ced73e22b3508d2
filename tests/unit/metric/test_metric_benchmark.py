from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from clock import Clock
from clock import clock as clock
from rich.console import Console

from benchmarks import metrics
from benchmarks.table import Row, interleave, less_is_better, print_table, write_rows
from manylabel.error import ManylabelError


def test_interleave_alternates_after_a_warm_up_and_gives_medians(clock: Clock) -> None:
    calls: list[str] = []
    pauses = iter([5.0, 0.01, 0.3, 0.02])  # one slow run does not move the median of three

    def ours() -> None:
        calls.append("ours")
        clock.seconds += next(pauses)

    def peer() -> None:
        calls.append("peer")
        clock.seconds += 0.05

    assert interleave(ours, peer, repeats=3) == pytest.approx((0.02, 0.05))
    assert calls == ["ours", "peer"] * 4
    with pytest.raises(ValueError, match="repeats"):
        interleave(ours, ours, repeats=0)


def test_rows_as_json_and_as_a_table(tmp_path: Path) -> None:
    row = less_is_better("average precision", "10 × 2", ours=0.5, peer=2.0, unit="s", peer_name="a peer")
    assert row.ratio == 4.0
    write_rows([row], tmp_path / "rows.json")
    (read,) = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["rows"]
    assert {"name", "case", "ours", "peer", "ratio", "unit"} <= set(read)
    assert Row(**read) == row
    text = StringIO()
    print_table([row], Console(file=text, width=200))
    assert all(part in text.getvalue() for part in ("average precision", "10 × 2", "4.00×", "a peer"))


def test_quick_run_compares_equal_results() -> None:
    rows = metrics.run(quick=True)
    assert [row.unit for row in rows] == ["s", "s", "s", "MB"]
    assert all(row.ours > 0 and row.ratio == pytest.approx(row.peer / row.ours) for row in rows)


def test_different_results_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "average_precision", lambda scores, targets: np.zeros(scores.shape[1]))
    with pytest.raises(AssertionError, match="differ"):
        metrics.run(quick=True)


def test_a_missing_peer_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    monkeypatch.setitem(sys.modules, "torchmetrics.functional.classification", None)
    with pytest.raises(ManylabelError, match=r'torchmetrics: pip install "manylabel\[bench\]"'):
        metrics.run(quick=True)
