"""Is this work tree slower than another commit? `make speed BASE=<commit>`, or: python tests/net/speed.py COMMIT

Both trees are measured turn by turn, each by a worker process of its own (speed_work.py, as the tree has it) that keeps
what it has imported and prepared. Only one of them works at a time, on one core. A ratio is the median of those of
the pairs, each of two measurements that followed each other. A row that looks slower is measured again, twice as often
at the most, before it is called slower. The exit code is 1 then, and the row is named; also where a row of the other
tree is not there any more, does not work, or does other work: nobody would know how fast that is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from speed_data import PARTS
from tree import HERE, brought_by, commit, environment

SLOWER = 1.10
WAITS = 1.15  # on the wall, where time is seen that no processor spends; other programs disturb it a little more
MORE_ROUNDS = 2  # of as many measurements again, for a row that looks slower
MEMORY = Path("/dev/shm")  # files in memory: how busy a disk is says nothing about a tree
ROOM = 2e9


@dataclass(frozen=True)
class Sample:
    """One measurement: seconds on the wall and of the processor, and how much was done in them."""

    wall: float
    cpu: float
    count: int


@dataclass
class Row:
    """What was measured of one row, in pairs that followed each other."""

    name: str
    what: str
    ours: list[Sample] = field(default_factory=list)
    base: list[Sample] = field(default_factory=list)
    wrong: str = ""  # why it was not measured, for which this tree is to blame
    lacks: str = ""  # why there is nothing to compare it with, for which it is not

    def pairs(self, clock: str = "cpu") -> list[float]:
        """Ratios of this tree's time to the other's, lowest first."""
        both = zip(self.ours, self.base, strict=True)
        return sorted(getattr(mine, clock) / getattr(other, clock) for mine, other in both)

    def ratio(self, clock: str = "cpu") -> float:
        """The middle one: what disturbs one measurement of five, or two, does not move it."""
        return statistics.median(self.pairs(clock))

    def compared(self) -> bool:
        return bool(self.ours) and not self.wrong and not self.lacks

    def slower(self) -> str:
        """How it is slower, or '' where it is not."""
        if not self.compared():
            return ""
        if self.ratio() > SLOWER:
            return f"takes {self.ratio():.2f} times the time"
        return f"waits: {self.ratio('wall'):.2f} times the time on the wall" if self.ratio("wall") > WAITS else ""


class Worker:
    """A tree's process: answers what it is asked, and otherwise waits."""

    def __init__(self, title: str, tree: Path, scratch: Path, data: Path) -> None:
        self.title = title
        self.complaints = scratch / "stderr.txt"
        scratch.mkdir(parents=True)
        script = brought_by(tree, "speed_work.py")
        with open(self.complaints, "wb") as complaints:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(script), str(data), str(scratch)],
                cwd=scratch,
                env={**environment(tree, scratch), "CUDA_VISIBLE_DEVICES": ""},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )
        told = self._answer()
        if not Path(told["package"]).resolve().is_relative_to(tree.resolve()):
            sys.exit(f"{title} would measure {told['package']}, which is not of {tree}")
        self.rows: dict[str, Any] = told["rows"]

    def measure(self, name: str) -> Sample | str:
        """One measurement, or why there is none."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # why it has ended is said where its answer is missed
            print(json.dumps({"row": name}), file=self.process.stdin, flush=True)
        answer = self._answer()
        return answer["error"] if "error" in answer else Sample(**answer)

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            last = self.complaints.read_text(encoding="utf-8", errors="replace")[-2000:]
            sys.exit(f"the worker of {self.title} ended with {self.process.wait()}:\n{last}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait()


def measure_rows(
    ours: Worker, base: Worker, rows: Sequence[Row], repeat: int, advance: Callable[[], None] = lambda: None
) -> None:
    """`repeat` pairs of every row that both have, one row after the other so that a busy second spoils few of each."""
    for turn in range(repeat):
        for number, row in enumerate(rows):
            if not (row.wrong or row.lacks):
                _measure_pair(ours, base, row, swapped=bool((turn + number) % 2))
            advance()


def _measure_pair(ours: Worker, base: Worker, row: Row, swapped: bool) -> None:
    found: dict[str, Sample | str] = {}
    for worker in (base, ours) if swapped else (ours, base):
        found[worker.title] = worker.measure(row.name)
    mine, other = found[ours.title], found[base.title]
    if isinstance(mine, str):
        row.wrong = f"does not work here: {mine}"
    elif isinstance(other, str):
        row.lacks = other
    elif mine.count != other.count:
        row.wrong = f"does other work: {mine.count} here, {other.count} there"
    else:
        row.ours.append(mine)
        row.base.append(other)


def compare(ours: Worker, base: Worker, rows: Sequence[Row], repeat: int, progress: Progress) -> None:
    """Every row `repeat` times; those that look slower again."""
    doubtful, text = list(rows), "measuring"
    for _ in range(1 + MORE_ROUNDS):
        task = progress.add_task(text, total=repeat * len(doubtful))
        measure_rows(ours, base, doubtful, repeat, partial(progress.advance, task))
        doubtful = [row for row in doubtful if row.slower()]
        text = f"again: {', '.join(row.name for row in doubtful)}"
        if not doubtful:
            break


def rows_of(ours: Worker, base: Worker, names: Sequence[str]) -> list[Row]:
    """The rows of either tree, or those that are named or begin like a name: `step` is all that begin with it."""
    everything = {**ours.rows, **{name: told for name, told in base.rows.items() if name not in ours.rows}}
    strange = [name for name in names if not any(row.startswith(name) for row in everything)]
    if strange:
        sys.exit(f"there is no row {strange[0]!r}; there are {', '.join(everything)}")
    chosen = [row for row in everything if not names or row.startswith(tuple(names))]
    return [
        Row(name, everything[name]["what"], wrong=_loss(name, ours, base), lacks=_lack(name, ours, base))
        for name in chosen
    ]


def _loss(name: str, ours: Worker, base: Worker) -> str:
    return "" if name in ours.rows else f"only {base.title} has it"


def _lack(name: str, ours: Worker, base: Worker) -> str:
    if name not in base.rows:
        return f"only {ours.title} has it"
    strange = [part for part in base.rows[name]["needs"] if part not in PARTS]
    return f"{base.title} measures it on other data ({strange[0]})" if strange else ""


def make_data(folder: Path, rows: Sequence[Row], *workers: Worker) -> None:
    """What the workers need for these rows."""
    wanted = [row.name for row in rows if not (row.wrong or row.lacks)]
    needs = {part for worker in workers for name in wanted for part in worker.rows[name]["needs"]}
    for part in sorted(needs):
        PARTS[part](folder / part)


@contextmanager
def work_tree() -> Iterator[Path]:
    """A copy of this tree's files as they are now, so that one can go on working while they are measured."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=HERE, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    with TemporaryDirectory(prefix="manylabel-ours-") as folder:
        for name in filter(None, names):
            if (HERE / name).is_file():  # what is deleted and not yet committed is still listed
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(HERE / name, Path(folder) / name)
        yield Path(folder)


def print_rows(rows: Sequence[Row], console: Console, base: str) -> None:
    table = Table(
        title=f"this tree against {base}: seconds of the processor, medians",
        caption="ratio: the median of the pairs' ratios, of two measurements that followed each other",
    )
    table.add_column("row", no_wrap=True)
    table.add_column("what")
    for title in ("this tree", base, "ratio", "all ratios", "pairs"):
        table.add_column(title, justify="right")
    table.add_column("")
    for row in rows:
        if not row.compared():
            table.add_row(row.name, row.what, "", "", "", "", "", row.wrong or row.lacks)
            continue
        pairs = row.pairs()
        said = "SLOWER" if row.slower() else "faster" if row.ratio() < 1 / SLOWER else ""
        times = (f"{statistics.median(one.cpu for one in side):.3f}" for side in (row.ours, row.base))
        spread = f"{pairs[0]:.2f} to {pairs[-1]:.2f}"
        table.add_row(row.name, row.what, *times, f"{row.ratio():.3f}", spread, str(len(pairs)), said)
    console.print(table)


def verdict(rows: Sequence[Row]) -> tuple[int, str]:
    """The exit code, and the rows that are to blame for it."""
    blamed = [f"{row.name}: {row.wrong}" for row in rows if row.wrong]
    blamed += [f"{row.name} {row.slower()}" for row in rows if row.slower()]
    if not any(row.compared() for row in rows):
        blamed.append("nothing could be compared")
    return (1, "\n".join(blamed)) if blamed else (0, "no row is more than 10 % slower")


def main() -> int:
    parser = argparse.ArgumentParser(description="Is this work tree slower than another commit?")
    parser.add_argument("base", help="a commit of this repository")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="rows that are named so, or begin so")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="measurements of a row to begin with")
    asked = parser.parse_args()
    if asked.repeat < 1:
        parser.error("--repeat is 1 or more")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # and what was made is removed
    memory = MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM else None
    with ExitStack() as stack:
        trees = stack.enter_context(work_tree()), stack.enter_context(commit(asked.base))
        place = Path(stack.enter_context(TemporaryDirectory(prefix="manylabel-speed-", dir=memory)))
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # and with it both workers: the same core for both
        workers = []
        for title, tree, scratch in zip(("this tree", asked.base), trees, ("ours", "base"), strict=True):
            workers.append(Worker(title, tree, place / scratch, place / "data"))
            stack.callback(workers[-1].close)
        ours, base = workers
        rows = rows_of(ours, base, asked.only)
        console = Console(width=None if sys.stdout.isatty() else 150)
        with Progress(console=Console(stderr=True), transient=True) as progress:
            making = progress.add_task("making data", total=None)
            make_data(place / "data", rows, ours, base)
            progress.remove_task(making)
            compare(ours, base, rows, asked.repeat, progress)
    print_rows(rows, console, asked.base)
    code, said = verdict(rows)
    console.print(said)
    return code


if __name__ == "__main__":
    sys.exit(main())
