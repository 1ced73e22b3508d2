"""The whole trial with numbers of its own, so that every night other files are mutated and other moments chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TRIAL = Path(__file__).with_name("trial.py")


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_every_case_survives(tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    failed = tmp_path / "failed.txt"
    workers = str(max(1, len(os.sched_getaffinity(0))))
    command = [sys.executable, str(TRIAL), "--seed", str(seed), "--workers", workers, "--out", str(failed)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    said = failed.read_text(encoding="utf-8") if failed.is_file() else done.stderr[-3000:]
    assert done.returncode == 0, f"make hostile SEED={seed}:\n{said}"
