"""manylabel as it is where nobody installed the extra [train]: a process in which importing torch fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from command import PLAIN, Answer

from manylabel.core.train_extra import LIBRARIES

BLOCKER = f"""
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {LIBRARIES!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, NotInstalled())
"""


def python(folder: Path, *arguments: str | Path) -> Answer:
    """`python ARGUMENTS`; `folder` is where the blocker is written."""
    (folder / "blocker").mkdir(exist_ok=True)
    (folder / "blocker" / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join([str(folder / "blocker"), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, *map(str, arguments)]
    env = {**os.environ, **PLAIN, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, env=env, timeout=300, cwd=folder)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def manylabel(folder: Path, *arguments: str | Path) -> Answer:
    return python(folder, "-m", "manylabel", *arguments)
