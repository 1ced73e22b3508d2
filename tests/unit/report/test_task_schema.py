"""What results of several tasks must hold before they are shown or compared."""

from __future__ import annotations

from typing import Any

import pytest

from manylabel.error import DataError
from manylabel.report.task_schema import check_history, check_task_results

ROW = {"name": "yeti", "ap": 12.5}
TASK = {
    **{"kind": "multi_label", "data": "photos", "goal": "mAP", "images": 4, "labels": 2, "experts": 4},
    **{"active_parameters": 10, "gmacs": 0.1, "head_gmacs": 0.1, "figures": {"mAP": 50.0}},
}


@pytest.mark.parametrize(
    "rows",
    [[{"ap": 1.0}], [{"name": "yeti"}], [{**ROW, "name": 5}], [{**ROW, "ap": "x"}], [{**ROW, "ap": 1e9}], ["yeti"], 7],
)
def test_labels_that_were_never_trained_are_checked_like_others(rows: Any) -> None:
    results = {"model": {"parameters": 5}, "tasks": {"labels": {**TASK, "never_trained": [ROW, {**ROW, "ap": None}]}}}
    check_task_results(results)
    results["tasks"]["labels"]["never_trained"] = rows
    with pytest.raises(DataError, match=r"results\.tasks\.labels\.never_trained"):
        check_task_results(results)


@pytest.mark.parametrize("key", ["loss", "pull", "k"])
def test_a_figure_that_no_axis_can_show_is_refused(key: str) -> None:
    check_history([{"epoch": 1, key: {"labels": 3e38}}, {"epoch": 2, key: {"labels": float("nan")}}])
    with pytest.raises(DataError, match=rf"history\[0\]\.{key}\.labels"):
        check_history([{"epoch": 1, key: {"labels": 1e300}}])
