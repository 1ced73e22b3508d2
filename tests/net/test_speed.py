"""The comparison of speeds, with workers that say what they are told to, and one that works."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress
from speed import Row, Worker, compare, make_data, print_rows, rows_of, verdict
from tree import HERE

FAKE = """
import json, sys
ANSWERS = json.loads({answers!r})
NEEDS = json.loads({needs!r})
rows = {{name: {{"what": "a test", "needs": NEEDS.get(name, [])}} for name in ANSWERS}}
print(json.dumps({{"package": __file__, "rows": rows}}), flush=True)
for line in sys.stdin:
    coming = ANSWERS[json.loads(line)["row"]]
    now = coming.pop(0) if len(coming) > 1 else coming[0]
    if now == "end":
        sys.exit("the tree fell")
    cpu, count, *wall = now if isinstance(now, list) else [now, 7]
    answer = {{"error": now}} if isinstance(now, str) else {{"cpu": cpu, "count": count, "wall": (wall or [cpu])[0]}}
    print(json.dumps(answer), flush=True)
"""
Answers = Mapping[str, Sequence[float | str | tuple[float, ...]]]  # of each row in turn, the last one for ever


class Fakes:
    """Workers of made-up trees."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workers = folder, list[Worker]()

    def worker(self, title: str, answers: Answers, **needs: list[str]) -> Worker:
        script = self.folder / title / "tests" / "net" / "speed_work.py"
        script.parent.mkdir(parents=True)
        script.write_text(FAKE.format(answers=json.dumps(answers), needs=json.dumps(needs)), encoding="utf-8")
        worker = Worker(title, self.folder / title, self.folder / "scratch" / title, self.folder / "data")
        self.workers.append(worker)
        return worker


@pytest.fixture
def fakes(tmp_path: Path) -> Iterator[Fakes]:
    made = Fakes(tmp_path)
    yield made
    for worker in made.workers:
        worker.close()


def _compared(fakes: Fakes, ours: Answers, base: Answers, **needs: list[str]) -> dict[str, Row]:
    pair = fakes.worker("ours", ours), fakes.worker("base", base, **needs)
    rows = rows_of(*pair, [])
    compare(*pair, rows, 5, Progress(disable=True))
    return {row.name: row for row in rows}


def test_a_slower_row_is_measured_again_and_named(fakes: Fakes) -> None:
    rows = _compared(fakes, {"steady": [1.0], "slow": [1.2]}, {"steady": [1.0], "slow": [1.0]})
    assert [len(row.ours) for row in rows.values()] == [5, 15]
    assert rows["slow"].ratio() == pytest.approx(1.2)
    assert verdict(list(rows.values())) == (1, "slow takes 1.20 times the time")


def test_a_little_is_no_news_and_faster_is_no_fault(fakes: Fakes) -> None:
    rows = _compared(fakes, {"near": [1.08], "fast": [0.5]}, {"near": [1.0], "fast": [1.0]})
    assert verdict(list(rows.values())) == (0, "no row is more than 10 % slower")
    console = Console(width=150, file=StringIO())
    print_rows(list(rows.values()), console, "base")
    assert "faster" in console.file.getvalue()  # type: ignore[attr-defined]


def test_time_that_no_processor_spends_is_seen(fakes: Fakes) -> None:
    rows = _compared(fakes, {"sleeps": [(1.0, 7, 1.2)], "near": [(1.0, 7, 1.1)]}, {"sleeps": [1.0], "near": [1.0]})
    assert verdict(list(rows.values())) == (1, "sleeps waits: 1.20 times the time on the wall")


def test_a_busy_while_is_forgiven(fakes: Fakes) -> None:
    """Three of the first five measurements are disturbed: the row is looked at again, and found to be as it was."""
    rows = _compared(fakes, {"row": [1.5, 1.4, 1.6, 1.0]}, {"row": [1.0]})
    assert len(rows["row"].ours) == 10
    assert verdict(list(rows.values()))[0] == 0


def test_what_the_other_tree_lacks_is_listed(fakes: Fakes) -> None:
    same: Answers = {"both": [1.0], "strange data": [1.0]}
    here = {**same, "broken there": [1.0], "ours": [1.0]}
    there = {**same, "broken there": ["KeyError: x"]}
    rows = _compared(fakes, here, there, **{"strange data": ["a part that nobody makes"]})
    assert {name: row.lacks for name, row in rows.items() if row.lacks} == {
        "broken there": "KeyError: x",
        "strange data": "base measures it on other data (a part that nobody makes)",
        "ours": "only ours has it",
    }
    assert verdict(list(rows.values()))[0] == 0


@pytest.mark.parametrize(
    ("here", "there", "said"),
    [
        ({"row": ["KeyError: x"]}, {"row": [1.0]}, "row: does not work here: KeyError: x"),
        ({"row": [(1.0, 7)]}, {"row": [(1.0, 8)]}, "row: does other work: 7 here, 8 there"),
        ({}, {"row": [1.0]}, "row: only base has it"),
    ],
)
def test_what_is_lost_here_is_a_failure(fakes: Fakes, here: Answers, there: Answers, said: str) -> None:
    rows = _compared(fakes, {**here, "fine": [1.0]}, {**there, "fine": [1.0]})
    assert verdict(list(rows.values())) == (1, said)
    console = Console(width=150, file=StringIO())
    print_rows(list(rows.values()), console, "base")
    assert said.removeprefix("row: ") in console.file.getvalue()  # type: ignore[attr-defined]


def test_nothing_compared_is_no_success(fakes: Fakes) -> None:
    rows = _compared(fakes, {"new": [1.0]}, {"old": [1.0]})
    assert verdict(list(rows.values())) == (1, "old: only base has it\nnothing could be compared")


def test_a_worker_that_ends_says_why(fakes: Fakes) -> None:
    worker = fakes.worker("ours", {"row": ["end"]})
    with pytest.raises(SystemExit, match="the worker of ours ended with 1:\nthe tree fell"):
        worker.measure("row")
    with pytest.raises(SystemExit, match="the worker of ours ended with 1"):
        worker.measure("row")


def test_rows_are_chosen_by_how_they_begin(fakes: Fakes) -> None:
    ours, base = (fakes.worker(title, {"step-a": [1.0], "step-b": [1.0], "start": [1.0]}) for title in ("ours", "base"))
    assert [row.name for row in rows_of(ours, base, ["step"])] == ["step-a", "step-b"]
    with pytest.raises(SystemExit, match="there is no row 'stop'; there are step-a, step-b, start"):
        rows_of(ours, base, ["stop"])


@pytest.mark.slow
def test_the_real_worker_works(tmp_path: Path) -> None:
    worker = Worker("this tree", HERE, tmp_path / "scratch", tmp_path / "data")
    try:
        found: dict[str, Any] = {}
        make_data(tmp_path / "data", [Row("read-voc", "")], worker)
        for name in ("read-voc", "average-precision", "figures"):
            found[name] = worker.measure(name)
    finally:
        worker.close()
    assert {name: getattr(one, "count", one) for name, one in found.items()} == {
        "read-voc": 5 * 800,
        "average-precision": 20 * 200,
        "figures": 3 * 80,
    }
    assert all(0 < one.cpu < 60 and one.wall > 0 for one in found.values())
