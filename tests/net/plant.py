"""Plant a bug in a copy of this work tree and see whether the quick tests notice; one bug at a time.

A test has noticed a bug when it fails, alone, with the bug and does not without it: in a second copy nothing is planted.

make plant                          # all of them; exit code 1 if one goes unnoticed
make plant ONLY="loss resume"
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tree import HERE, environment


@dataclass(frozen=True)
class Bug:
    """In `file`, the text `right` (it stands there once) becomes `wrong`."""

    name: str
    file: str
    right: str
    wrong: str


BUGS = (
    Bug("metric", "metric/average_precision.py", "cuts.hits / cuts.predicted", "cuts.hits / (cuts.predicted + 1)"),
    Bug("threshold", "metric/threshold.py", "middle = (cut + below) / 2", "middle = cut + (cut - below) / 2"),
    Bug("split", "data/stratify.py", "(has == count) & (gets > 0)", "(has == count) & (gets < 0)"),
    Bug("loss", "loss/asymmetric.py", "(x.sigmoid() - m).clamp(", "(x.sigmoid() + m).clamp("),
    Bug("resume", "training/snapshot.py", 'ema.steps = found.values["ema_steps"]', "ema.steps = 0"),
    Bug("escaping", "report/page.py", "autoescape=True", "autoescape=False"),
    Bug("reader", "data/read/columns.py", '("?", *UNSURE), UNKNOWN)', '("?", *UNSURE), ABSENT)'),
    Bug("exit-code", "cli/__init__.py", "sys.exit(asked or 2)", "sys.exit(asked or 0)"),
)


# All of the quick tests, those that fail soonest first.
FIRST = ("tests/oracle", "tests/net", "tests/unit")
THEN = ("tests/contract", "tests/e2e", "tests/reliability", "tests/browser", "tests/docs", "tests/mutation")
SOON = (
    "--dist",
    "load",
    "--maxschedchunk",
    "4",
)  # a worker that was given many tests would run them all before it ends
ALONE = ("-n", "0", "-p", "no:randomly", "-m", "")
NO_TESTS = int(pytest.ExitCode.NO_TESTS_COLLECTED)
FAILED = Path(".pytest_cache", "v", "cache", "lastfailed")  # with the tests of which a fixture failed


def plant(bug: Bug, tree: Path) -> None:
    path = tree / "manylabel" / bug.file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.count(bug.right) != 1:
        sys.exit(
            f"bug {bug.name!r} cannot be planted: manylabel/{bug.file} does not hold {bug.right!r} once; mend BUGS"
        )
    path.write_text(text.replace(bug.right, bug.wrong), encoding="utf-8")


def copy_to(tree: Path) -> None:
    """The files of this work tree that git knows or would take, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=HERE,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (HERE / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(HERE / name, tree / name)


def noticed(bug: Bug, control: Path, options: Sequence[str]) -> bool:
    """`control` is a copy without the bug."""
    started = time.monotonic()
    with _copy() as tree:
        plant(bug, tree)
        test = _noticing(tree, control, [*options, *FIRST]) or _noticing(tree, control, [*options, *THEN])
    seconds = time.monotonic() - started
    print(f"{bug.name:12} {f'noticed by {test}' if test else 'NOT NOTICED'}  ({seconds:.0f} s)", flush=True)
    return test is not None


@contextmanager
def _copy() -> Iterator[Path]:
    with TemporaryDirectory(prefix="manylabel-planted-") as folder:
        copy_to(Path(folder) / "tree")
        yield Path(folder) / "tree"


def _noticing(tree: Path, control: Path, options: Sequence[str]) -> str | None:
    """The first test that fails because of the bug, if one does."""
    without: list[str] = []
    while failing := _failing(tree, [*options, *SOON, "-x", *without]):
        for test in failing:
            if _failing(tree, [*ALONE, test]) and not _failing(control, [*ALONE, test]):
                return test
            print(f"not counted, for it is not the bug that fails it: {test}", flush=True)
            without += [f"--deselect={test}" if "::" in test else f"--ignore={test}"]
    return None


def _failing(tree: Path, options: Sequence[str]) -> list[str]:
    """Tests that fail, or of which a fixture does."""
    (tree / FAILED).unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options],
        cwd=tree,
        env=environment(tree, tree.parent / "home"),
        capture_output=True,
        text=True,
    )
    failed = list(json.loads((tree / FAILED).read_text(encoding="utf-8"))) if (tree / FAILED).is_file() else []
    if done.returncode not in (0, NO_TESTS) and not failed:  # it could not even begin
        sys.exit(f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return failed


def main() -> None:
    """Names of bugs, then -- and the options of pytest that make the quick tests."""
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    wanted, tests = sys.argv[1:end], sys.argv[end + 1 :]
    known = {bug.name: bug for bug in BUGS}
    wanted = wanted or list(known)
    if unknown := set(wanted) - set(known):
        sys.exit(f"there is no bug {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    with _copy() as control:
        missed = [name for name in wanted if not noticed(known[name], control, tests)]
    sys.exit(f"not noticed: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
