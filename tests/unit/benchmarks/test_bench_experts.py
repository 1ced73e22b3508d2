"""The benchmark of sparse experts: the rows it promises, and times that are the best of several."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from clock import Clock
from clock import clock as clock

from benchmarks import run_bench
from benchmarks.experts import PEERS, best


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """On a busy machine two threads spend their time waiting for each other at every one of these tiny products."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_rows_of_the_quick_benchmark() -> None:
    rows = run_bench("experts", quick=True)
    assert [(row.name, row.peer_name) for row in rows[:4]] == [
        ("16 experts", "8 experts"),
        ("32 experts", "8 experts"),
        ("64 experts", "8 experts"),
        ("sparse experts", "all experts on all tokens"),
    ]
    assert [row.peer_name for row in rows[4:]] == list(PEERS)  # both are in the extra that tests install
    for row in rows:
        assert row.unit == "ms"
        assert row.ours > 0
        assert row.ratio == row.peer / row.ours


def test_the_best_of_several_turns_without_the_first(clock: Clock) -> None:
    waits = iter([0.0, 0.06, 0.03])
    order: list[str] = []

    def slow() -> None:
        order.append("slow")
        clock.seconds += next(waits)

    found = best({"slow": slow, "quick": lambda: order.append("quick")}, repeats=2)
    assert found == pytest.approx({"slow": 0.03, "quick": 0.0})
    assert order == ["slow", "quick"] * 3
