"""Another commit of this project beside this work tree, and Python that runs with the package of either."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parents[2]


@contextmanager
def commit(name: str) -> Iterator[Path]:
    """A temporary folder with all files of that commit."""
    with TemporaryDirectory(prefix="manylabel-base-") as folder:
        archive = subprocess.run(["git", "archive", name], cwd=HERE, capture_output=True)
        if archive.returncode:
            sys.exit(f"BASE={name} is no commit of this repository: {archive.stderr.decode().strip()}")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


def environment(tree: Path, scratch: Path, threads: int = 1) -> dict[str, str]:
    """For a process that imports manylabel from `tree`, and keeps its caches and its home in `scratch`."""
    scratch.mkdir(parents=True, exist_ok=True)
    alone = {"PYTHONPATH": str(tree), "HOME": str(scratch), "MANYLABEL_CACHE": str(scratch / "cache")}
    few = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    plain = {"NO_COLOR": "1", "COLUMNS": "160", "PYTHONHASHSEED": "0"}
    return {**os.environ, **alone, **few, **plain}


def brought_by(tree: Path, name: str) -> Path:
    """A script of the net as that tree has it, so that each speaks its own settings; this tree's where it has none."""
    own = tree / "tests" / "net" / name
    return own if own.is_file() else HERE / "tests" / "net" / name
