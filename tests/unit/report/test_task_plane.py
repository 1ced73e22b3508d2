"""Fig. 1 of AdaMV-MoE for any runs: one task's figure against the mean of the others', as large as what it costs."""

from __future__ import annotations

from typing import Any

from manylabel.report.task_comparison_page import places


def spread(value: float) -> dict[str, Any]:
    return {"mean": value, "deviation": None, "seeds": [value]}


def method(name: str, *figures: float | None) -> Any:
    tasks = {task: {"gmacs": 2.0, "head_gmacs": 0.5} for task in ("classes", "objects")}
    return {"name": name, "figures": [None if one is None else spread(one) for one in figures], "tasks": tasks}


def test_a_method_is_a_point() -> None:
    columns = [["classes", "top-1"], ["objects", "AP"], ["objects", "mask AP"]]
    methods = [method("dense", 68.3, 36.35, 34.01), method("classes alone", 73.0, None, None)]
    comparison: Any = {"columns": columns, "methods": methods}
    assert places(comparison) == {"dense": ((36.35 + 34.01) / 2, 68.3, 5.0)}  # who has not all figures has no place


def test_one_task_has_nothing_to_stand_against() -> None:
    comparison: Any = {"columns": [["classes", "top-1"]], "methods": [method("alone", 73.0)]}
    assert places(comparison) == {}
