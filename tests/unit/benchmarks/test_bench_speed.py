"""The speed of heads: rows for every head and number of labels, memory where the system tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import hsq
from benchmarks.memory import peak_megabytes
from benchmarks.speed import print_speeds, speeds
from benchmarks.table import write_rows
from manylabel.error import ConfigError


def test_every_head_at_every_number_of_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = speeds(["ml_decoder", "hsq"], [3, 150], {"dim": 16, "heads": 2, "hidden": 8, "shared_experts": 2}, batch=2)
    assert [(row.head, row.labels) for row in rows] == [
        ("ml_decoder", 3),
        ("hsq", 3),
        ("ml_decoder", 150),
        ("hsq", 150),
    ]
    assert all(row.train_ms > 0 and row.eval_ms > 0 for row in rows)
    assert rows[0].train_ratio == 1
    print_speeds(rows, 2)
    assert "hsq" in capsys.readouterr().out
    write_rows(rows, tmp_path / "speed.json")
    assert (tmp_path / "speed.json").is_file()
    with pytest.raises(ConfigError, match="did you mean 'shared_experts'"):
        speeds(["hsq"], [3], {"shared_expert": 2})


def test_peak_memory_sees_what_is_allocated() -> None:
    import numpy as np

    found = peak_megabytes(lambda: np.ones(20_000_000).sum())  # 160 MB
    if found is None:
        pytest.skip("this system does not tell")
    assert 100 < found < 400


@pytest.mark.slow
def test_the_layer_outruns_the_loops() -> None:
    rows = hsq.run(quick=True)
    assert all(row.ratio > 3 for row in rows if row.unit == "ms")
