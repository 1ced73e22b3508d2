"""What a golden comparison calls different, and what becomes of one side when the other fails."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import golden_runs
import pytest
import torch
from golden import compare, run_both
from golden_facts import leaves, weight_facts
from safetensors.torch import save_file

FAILS = "import sys; sys.exit(3)"
WORKS = """
import subprocess, sys, time
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path("running.partial").write_text(str(child.pid))
Path("running.partial").rename("running")
time.sleep(600)
"""


def _run(facts: dict[str, Any], names: dict[str, str] | None = None, *problems: str) -> dict[str, Any]:
    return {"facts": facts, "names": names or {}, "problems": list(problems)}


def _weights(path: Path, **tensors: torch.Tensor) -> dict[str, Any]:
    save_file(tensors, path)
    return _run(*weight_facts(path))


def _compared(before: dict[str, Any], after: dict[str, Any]) -> tuple[int, str]:
    different, lines = compare({"run": before}, {"run": after})
    return different, "\n".join(lines)


def test_a_renamed_tensor_is_the_same_tensor(tmp_path: Path) -> None:
    before = _weights(tmp_path / "before", one=torch.ones(3), two=torch.zeros(3))
    after = _weights(tmp_path / "after", another=torch.ones(3), two=torch.zeros(3))
    assert _compared(before, after) == (0, "equal: 2 facts of 1 runs")


def test_the_last_bit_of_a_tensor_is_seen(tmp_path: Path) -> None:
    before = _weights(tmp_path / "before", one=torch.ones(3), two=torch.zeros(3))
    after = _weights(tmp_path / "after", one=torch.ones(3), two=torch.tensor([0.0, 0.0, 1e-45]))
    different, said = _compared(before, after)
    assert different == 1
    assert "run: 1 of 2 facts differ (weights 1)" in said
    assert "(two): 1 → gone" in said
    assert "note: 1 new facts" in said


@pytest.mark.parametrize("other", [torch.ones(1, 3), torch.ones(3, dtype=torch.float64)])
def test_another_shape_or_type_of_the_same_numbers_is_seen(tmp_path: Path, other: torch.Tensor) -> None:
    before, after = _weights(tmp_path / "before", one=torch.ones(3)), _weights(tmp_path / "after", one=other)
    assert _compared(before, after)[0] == 1


def test_a_tensor_that_is_there_once_and_was_twice_is_seen(tmp_path: Path) -> None:
    before = _weights(tmp_path / "before", one=torch.ones(3), two=torch.ones(3))
    different, said = _compared(before, _weights(tmp_path / "after", one=torch.ones(3)))
    assert different == 1
    assert "(one, two): 2 → 1" in said


@pytest.mark.parametrize(
    ("before", "after", "different"),
    [
        ({"mAP": 51.2}, {"mAP": 51.2}, 0),
        ({"mAP": 51.2}, {"mAP": 51.20000000000001}, 1),
        ({"mAP": 51.2}, {}, 1),
        ({"mAP": 51.2}, {"mAP": 51.2, "more": 1}, 0),
        ({"count": 1}, {"count": 1.0}, 1),
        ({"mAP": float("nan")}, {"mAP": float("nan")}, 0),
        ({"mAP": None}, {"mAP": float("nan")}, 1),
        ({"labels": ["a", "b"]}, {"labels": ["b", "a"]}, 2),
        ({"labels": []}, {"labels": ["a"]}, 1),
        ({"created": "today", "seconds": 3}, {"created": "tomorrow", "seconds": 4}, 0),
        ({"text": "x" * 200}, {"text": "x" * 199 + "y"}, 1),
    ],
)
def test_every_other_fact_is_seen(before: dict[str, Any], after: dict[str, Any], different: int) -> None:
    facts = [_run(dict(leaves(one, "results.json"))) for one in (before, after)]
    assert _compared(*facts)[0] == different


def test_runs_that_failed_are_gone_or_new() -> None:
    fine = _run({"a": 1, "b": 2})
    assert _compared(fine, _run({}, {}, "exit code 1"))[0] == 1
    assert _compared(_run({}, {}, "exit code 1"), fine)[0] == 1
    assert compare({"run": fine}, {}) == (1, ["run: this run is gone", "different: 1 facts differ, 0 are equal"])
    assert compare({"run": fine}, {"run": fine, "more": fine})[0] == 0
    assert compare({}, {"run": fine})[0] == 1


@pytest.mark.parametrize("failing", ["base", "here"])
def test_where_one_side_fails_the_other_is_stopped(tmp_path: Path, failing: str) -> None:
    trees = {name: tmp_path / name for name in ("base", "here")}
    running = tmp_path / "scratch" / ("here" if failing == "base" else "base") / "work" / "running"
    wait = f"import os, time\nwhile not os.path.exists({str(running)!r}): time.sleep(0.01)\n"
    for name, tree in trees.items():
        (tree / "tests" / "net").mkdir(parents=True)
        program = wait + FAILS if name == failing else WORKS
        (tree / "tests" / "net" / "golden_runs.py").write_text(program, encoding="utf-8")
    with pytest.raises(SystemExit, match=f"the runs of {failing} ended with exit code 3"):
        run_both(trees, tmp_path / "scratch", [])
    child, until = int(running.read_text()), time.monotonic() + 60
    while _lives(child):
        assert time.monotonic() < until
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_two_processes_that_never_end_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden_runs, "WAIT", 0.1)
    (problem,) = golden_runs._in_processes(2, ["train", "scenes", "--out", "run"], tmp_path)
    assert "manylabel train scenes --out run: exit code" in problem
