from __future__ import annotations

from benchmarks import run_bench


def test_quick_loader_benchmark_gives_rows_of_rates() -> None:
    rows = run_bench("loader", quick=True)
    assert [row.peer_name for row in rows] == [
        "torchvision ImageFolder + DataLoader",
        "bare JPEG decoding at full size, one core",
    ]
    for row in rows:
        assert row.unit == "images/s"
        assert row.ours > 0
        assert row.ratio == row.ours / row.peer
