"""From the targets to the table: copy the tree, watch the tests once, try every mutant of the sample."""

from __future__ import annotations

import importlib
import itertools
import pickle
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from mutation.forks import Work, results
from mutation.mutants import Mutant, sample
from mutation.survivors import entry, explained, key_of, outdated
from mutation.targets import Targets
from mutation.trial import Seen, collect, look, passes

HERE = Path(__file__).parents[2]
LONG = 900.0  # seconds for the tests as they are
NO_TESTS, PASSED = 5, 0  # exit codes of pytest
OUTCOMES = ("killed", "timeout", "survived", "explained")


def run(targets: Targets, count: int, seed: int, workers: int, only: str = "") -> int:
    """0 if every survivor is explained, else 1."""
    start, reasons = time.monotonic(), explained()
    with TemporaryDirectory(prefix="manylabel-mutants-") as scratch, copied(HERE, Path(scratch) / "tree") as tree:
        targets.check(tree)
        everything = targets.mutants(tree)
        chosen = [m for m in sample(everything, count, seed) if only in f"{m.file}\n{m.where}\n{m.was}\n{m.now}"]
        trials = Trials(tree, Path(scratch), workers)
        trials.watch(targets, sorted({mutant.file for mutant in everything}))
        say(f"{len(chosen)} of {len(everything)} mutants, seed {seed}; {len(trials.seen.seconds)} tests watched", start)
        outcome: dict[Mutant, str] = {}
        for mutant, result in trials.of(chosen):
            outcome[mutant] = "explained" if result == "survived" and key_of(mutant) in reasons else result
            if outcome[mutant] == "survived":
                print(shown(mutant, trials.tests_of(mutant)), flush=True)
            if len(outcome) % 25 == 0:
                say(f"{len(outcome)} tried", start)
    print(table(outcome))
    for key in outdated(reasons, everything):
        print(f"survivors.yaml: no mutant of the code any more: {' | '.join(key)}")
    if unexplained := [mutant for mutant in outcome if outcome[mutant] == "survived"]:
        print("\nNeither killed nor explained; for survivors.yaml:\n\n" + "\n".join(entry(m) for m in unexplained))
    say(f"{len(unexplained)} survivors to kill or to explain", start)
    return 1 if unexplained else 0


class Trials:
    """Tries mutants of a tree, each with the tests that run its lines."""

    def __init__(self, tree: Path, scratch: Path, workers: int) -> None:
        self.tree, self.scratch, self.workers = tree, scratch, workers
        self.seen = Seen()
        self.extra = 30.0  # seconds that a trial may take beyond what its tests took
        self._number = itertools.count()

    def watch(self, targets: Targets, files: Sequence[str]) -> None:
        """Run all tests on the code as it is. They must pass."""
        to = self.scratch / "collected"
        self._must_pass([self._work("the tests", partial(collect, self.tree, targets.tests, to=to), LONG)])
        modules: list[str] = pickle.loads(to.read_bytes()).modules  # noqa: S301 - written by a fork of this process
        if mine := {file.split("/")[0] for file in files} & {name.split(".")[0] for name in modules}:
            raise SystemExit(
                f"{', '.join(mine)} is not imported from the copy of the tree, so nothing would be mutated"
            )
        for name in modules:
            with suppress(Exception):
                importlib.import_module(name)
        works = []
        for number, test in enumerate(targets.tests):
            watched = partial(look, self.tree, [test], files=files, without=targets.without, to=self._seen(number))
            works.append(self._work(test, watched, LONG))
        self._must_pass(works)
        for number in range(len(works)):
            self.seen.add(pickle.loads(self._seen(number).read_bytes()))  # noqa: S301

    def of(self, mutants: Sequence[Mutant]) -> Iterator[tuple[Mutant, str]]:
        """Each mutant: killed, survived or timeout. The code as it is goes the same way first, and must survive."""
        sources = {mutant.file: (self.tree / mutant.file).read_text(encoding="utf-8") for mutant in mutants}
        everything = list(self.seen.seconds)
        self._must_pass([self._work("the control", partial(passes, self.tree, everything, codes=sources), LONG)])
        for work, code in results([self._trial(mutant) for mutant in mutants], self.workers):
            if code == NO_TESTS:
                raise SystemExit(f"no test was run for {work.name}")
            yield work.name, "timeout" if code is None else "survived" if code == PASSED else "killed"

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Those that run its lines, the quick ones first; then the rest of their files, for a fixture may be shared."""
        return self._with_neighbours(self._running(mutant.file, mutant.lines) or self._running(mutant.file))

    def _running(self, file: str, lines: frozenset[int] | None = None) -> list[str]:
        """What only runs at import (`lines` of a class, for example) is run by all that use the file."""
        by_line = self.seen.tests.get(file, {})
        found = {test for line, tests in by_line.items() if lines is None or line in lines for test in tests}
        return sorted(found, key=lambda test: self.seen.seconds[test])

    def _with_neighbours(self, tests: list[str]) -> list[str]:
        files = {test.split("::")[0] for test in tests}
        rest = [test for test in self.seen.seconds if test.split("::")[0] in files]
        return list(dict.fromkeys([*tests, *sorted(rest, key=lambda test: self.seen.seconds[test])]))

    def _trial(self, mutant: Mutant) -> Work:
        if not (tests := self.tests_of(mutant)):
            raise SystemExit(f"no test of targets.yaml runs anything of {mutant.file}")
        seconds = self.extra + 5 * sum(self.seen.seconds[test] for test in tests)
        return self._work(mutant, partial(passes, self.tree, tests, codes={mutant.file: mutant.code}), seconds)

    def _work(self, name: object, run: Callable[..., int], seconds: float) -> Work:
        number = next(self._number)
        place = self.scratch / f"place-{number}"
        return Work(name, partial(run, place=place), seconds, self.scratch / f"log-{number}.txt")

    def _must_pass(self, works: Sequence[Work]) -> None:
        for work, code in results(works, self.workers):
            if code != PASSED:
                print(work.log.read_text(encoding="utf-8", errors="replace"), file=sys.stderr)
                raise SystemExit(f"{work.name}: the tests do not pass on the code as it is ({code})")

    def _seen(self, number: int) -> Path:
        return self.scratch / f"seen-{number}"


@contextmanager
def copied(tree: Path, to: Path) -> Iterator[Path]:
    """The files of a work tree as they are now, in a folder that is taken away again."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=tree,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (tree / name).is_file():  # it may be deleted
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree / name, to / name)
    try:
        yield to.resolve()
    finally:
        shutil.rmtree(to, ignore_errors=True)


def shown(mutant: Mutant, tests: Sequence[str]) -> str:
    """A survivor as a diff."""
    lines = [f"  - {line}" for line in mutant.was.splitlines()] + [f"  + {line}" for line in mutant.now.splitlines()]
    head = f"survived {len(tests)} tests: {mutant.file}:{mutant.line} in {mutant.where or 'the module'}"
    return "\n".join([head, *lines])


def table(outcome: dict[Mutant, str]) -> str:
    """Files and what became of their mutants."""
    count = Counter((mutant.file, result) for mutant, result in outcome.items())
    files = sorted({mutant.file for mutant in outcome})
    rows = [[file, *(count[file, result] for result in OUTCOMES)] for file in files]
    rows.append(["all", *(sum(count[file, result] for file in files) for result in OUTCOMES)])
    width = max(len(str(row[0])) for row in rows)
    head = f"{'file':{width}}  mutants" + "".join(f"{result:>11}" for result in OUTCOMES)
    lines = [f"{row[0]:{width}}  {sum(row[1:]):>7}" + "".join(f"{n:>11}" for n in row[1:]) for row in rows]
    return "\n".join(["", head, *lines, ""])


def say(what: str, start: float) -> None:
    minutes, seconds = divmod(int(time.monotonic() - start), 60)
    print(f"[{minutes}:{seconds:02d}] {what}", flush=True)
