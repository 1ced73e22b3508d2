"""`manylabel bench` is there in a clone; of the package alone it says where to find it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import manylabel

ROOT = Path(str(manylabel.__file__)).parents[1]


def test_without_the_repository_it_says_where_the_benchmarks_are(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "manylabel", tmp_path / "manylabel", ignore=shutil.ignore_patterns("__pycache__"))
    for words in (["metrics", "--quick"], ["--help"], []):
        asked = [sys.executable, "-P", "-m", "manylabel", "bench", *words]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        found = subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert found.returncode == 2, found.stderr
        assert "clone of the repository" in " ".join(found.stderr.split())
