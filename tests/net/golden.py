"""The same small runs with this work tree and with another commit, side by side: every fact must be the same.

    python tests/net/golden.py BASE [--only NAME …]

A fact that is different, or gone, ends with exit code 1; one that is new is a note.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tree import HERE, brought_by, commit, environment

SHOWN = 20  # differences of a run that are told
Runs = dict[str, dict[str, Any]]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("base", metavar="BASE", help="a commit")
    asked.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these runs (see golden_runs.py)")
    given = asked.parse_args()
    with commit(given.base) as base, TemporaryDirectory(prefix="manylabel-golden-") as scratch:
        found = run_both({"base": base, "here": HERE}, Path(scratch), given.only)
    unknown = set(given.only) - found["base"].keys() - found["here"].keys()
    if unknown:
        sys.exit(f"there is no run {', '.join(sorted(unknown))}")
    different, lines = compare(found["base"], found["here"])
    print(*lines, sep="\n")
    sys.exit(bool(different))


def run_both(trees: Mapping[str, Path], scratch: Path, only: list[str]) -> dict[str, Runs]:
    """At the same time. Where one fails, the other is stopped: the folders in which it works will go."""
    with ExitStack() as stack:
        sides = [_Side(name, tree, scratch / name, only, stack) for name, tree in trees.items()]
        while None in [side.ended() for side in sides]:
            time.sleep(0.1)
        return {side.name: side.runs() for side in sides}


class _Side:
    """One tree's runs, in a process that was begun and has a group of its own."""

    def __init__(self, name: str, tree: Path, scratch: Path, only: list[str], stack: ExitStack) -> None:
        self.name, self.tree, self.out = name, tree, scratch / "facts.json"
        work = scratch / "work"
        work.mkdir(parents=True)
        command = [sys.executable, str(brought_by(tree, "golden_runs.py")), str(self.out), str(work), *only]
        self.process = subprocess.Popen(
            command,
            cwd=work,
            env=environment(tree, scratch),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        stack.callback(self._stop)
        self.telling = threading.Thread(target=self._tell, daemon=True)
        self.telling.start()

    def _tell(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            print(f"{self.name}: {line}", end="", flush=True)

    def _stop(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ended(self) -> int | None:
        """None while it works; where it failed, that is the end of everything."""
        if code := self.process.poll():
            sys.exit(f"the runs of {self.name} ended with exit code {code}")
        return code

    def runs(self) -> Runs:
        self.telling.join()
        found = json.loads(self.out.read_text(encoding="utf-8"))
        if not Path(found["package"]).is_relative_to(self.tree.resolve()):
            sys.exit(f"the runs of {self.name} were made by {found['package']}, which is not in {self.tree}")
        runs: Runs = found["runs"]
        return runs


def compare(base: Runs, here: Runs) -> tuple[int, list[str]]:
    """(how many facts differ or are gone, what there is to say); the last line says whether all is equal."""
    different, equal, lines = 0, 0, []
    for name, before in base.items():
        after = here.get(name)
        if after is None:
            different += 1
            lines.append(f"{name}: this run is gone")
            continue
        failed = [
            f"{name}: {side}: {problem}"
            for side, one in (("base", before), ("here", after))
            for problem in one["problems"]
        ]
        changed = failed or _changes(before, after)
        new = [fact for fact in after["facts"] if fact not in before["facts"] and not failed]
        different += len(changed)
        equal += 0 if failed else len(before["facts"]) - len(changed)
        if changed:
            parts = Counter(change.split("/")[0] for change in changed) if not failed else {}
            where = ", ".join(f"{part} {count}" for part, count in parts.items())
            lines.append(f"{name}: {len(changed)} of {len(before['facts'])} facts differ{where and f' ({where})'}")
            lines += [f"    {change}" for change in changed[:SHOWN]]
            lines += [f"    … and {len(changed) - SHOWN} more"] if len(changed) > SHOWN else []
        if new:
            lines.append(
                f"{name}: note: {len(new)} new facts: {', '.join(new[:SHOWN])}{', …' if len(new) > SHOWN else ''}"
            )
    lines += [f"{name}: note: this run is new" for name in here if name not in base]
    if not base:
        different += 1
        lines.append("there was nothing to compare")
    lines.append(
        f"different: {different} facts differ, {equal} are equal"
        if different
        else f"equal: {equal} facts of {len(base)} runs"
    )
    return different, lines


def _changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    found = []
    for fact, value in before["facts"].items():
        name = f" ({before['names'][fact]})" if fact in before["names"] else ""
        if fact not in after["facts"]:
            found.append(f"{fact}{name}: {json.dumps(value)} → gone")
        elif json.dumps(value) != json.dumps(after["facts"][fact]):  # so 1 is not 1.0, and NaN is NaN
            found.append(f"{fact}{name}: {json.dumps(value)} → {json.dumps(after['facts'][fact])}")
    return found


if __name__ == "__main__":
    main()
