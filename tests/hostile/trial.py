"""A hostile trial: hundreds of ways to lose, mislead, crash or hang, each in a sandbox that is compared byte for byte.

    python tests/hostile/trial.py [--only CATEGORY[/NAME] …] [--seed N] [--list] [--workers N]
                                  [--out FILE] [--write] [--keep FOLDER]

--only takes patterns, e.g. 'cache' or 'cache/*nan*'. --out names a file for those that did not survive; --write puts the
table into docs/reliability.md; --keep leaves the sandboxes of those that did not survive in a folder. The exit code is 1
when a case did not survive.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS)]
sys.path = [each for each in sys.path if Path(each or ".").resolve() != Path(__file__).parent]
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("MPLBACKEND", "Agg")

from hostile.box import Box  # noqa: E402
from hostile.case import Case  # noqa: E402
from hostile.cases import all_cases  # noqa: E402
from hostile.fate import SURVIVED, Fate  # noqa: E402
from hostile.folder_facts import facts_of, lost  # noqa: E402
from hostile.kit import Kit  # noqa: E402
from hostile.table import PAGE, Verdict, failures, markdown, write_into  # noqa: E402


def main(words: Sequence[str] | None = None) -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--only", nargs="+", default=[], metavar="CATEGORY[/NAME]")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--list", action="store_true")
    asked.add_argument("--workers", type=int, default=2)
    asked.add_argument("--out", type=Path, metavar="FILE")
    asked.add_argument("--write", action="store_true")
    asked.add_argument("--keep", type=Path, metavar="FOLDER")
    asked.add_argument("--limit", type=float, metavar="MINUTES", help="begin no case after so many minutes")
    given = asked.parse_args(words)
    cases = chosen(all_cases(), given.only)
    if not cases:
        asked.error("there is no such case; --list shows them")
    if given.list:
        print("\n".join(case.title for case in cases))
        return 0
    load_everything()
    scratch = Path(tempfile.mkdtemp(prefix="manylabel-hostile-"))
    scratch.chmod(0o755)  # for the cases that are tried as nobody
    try:
        kit = Kit(scratch / "kit").make(say=lambda text: print(f"kit: {text}", flush=True))
        before = facts_of(kit.folder)
        verdicts = try_all(cases, kit, scratch, given)
        changed = lost(before, facts_of(kit.folder), ["cache/**", "matplotlib/**"])
        if changed:
            verdicts.append(Verdict("the kit", "outside of every sandbox", "lost", "; ".join(changed[:5])))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    table = markdown(verdicts)
    print(f"\n{table}")
    if given.out:
        given.out.write_text(failures(verdicts), encoding="utf-8")
    if given.write:
        write_into(PAGE, table)
    return int(not all(one.survived for one in verdicts))


def chosen(cases: Sequence[Case], only: Sequence[str]) -> list[Case]:
    def wanted(case: Case) -> bool:
        return any(fnmatch(case.title, one) or fnmatch(case.category, one) for one in only)

    return [case for case in cases if not only or wanted(case)]


def load_everything() -> None:
    """What a command would load, once: the processes of the cases are forked from this one."""
    import encodings
    import importlib
    import pkgutil

    import accelerate  # noqa: F401
    import matplotlib.font_manager
    import matplotlib.pyplot  # noqa: F401
    import rich.progress  # noqa: F401
    import timm  # noqa: F401
    import torch
    import torch.utils.flop_counter
    import torchvision.transforms.v2  # noqa: F401

    import manylabel

    if not Path(manylabel.__file__).is_relative_to(TESTS.parent):
        raise SystemExit(f"this would try {manylabel.__file__}, which is not in {TESTS.parent}")
    codecs = [each for each in pkgutil.iter_modules(encodings.__path__, "encodings.") if each.name != "encodings.mbcs"]
    for module in [*pkgutil.walk_packages(manylabel.__path__, "manylabel."), *codecs]:
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # an extra that is not installed
                importlib.import_module(module.name)
    torch.set_num_threads(1)


def try_all(cases: Sequence[Case], kit: Kit, scratch: Path, given: argparse.Namespace) -> list[Verdict]:
    """Each in a process of its own, so many at a time, in the order that was asked."""
    found: dict[int, Verdict] = {}
    running: dict[int, int] = {}  # process → number of the case
    waiting = list(enumerate(cases))
    began = time.monotonic()
    try:
        while waiting or running:
            late = given.limit is not None and time.monotonic() - began > 60 * given.limit
            if late:
                waiting = []
            while waiting and len(running) < given.workers:
                number, case = waiting.pop(0)
                running[_begin(number, case, kit, scratch, given)] = number
            if not running:
                break
            pid, status = os.wait()
            if pid not in running:
                continue
            number = running.pop(pid)
            verdict = found[number] = _verdict(number, cases[number], scratch, status)
            if not verdict.survived:
                print(f"{cases[number].title}: {verdict.fate}: {verdict.reason[:300]}", flush=True)
            if len(found) % 50 == 0:
                survived = sum(one.survived for one in found.values())
                minutes = (time.monotonic() - began) / 60
                print(f"… {len(found)} of {len(cases)} tried, {survived} survived, {minutes:.1f} min", flush=True)
    except BaseException:
        for pid in running:
            os.killpg(pid, signal.SIGKILL)
        raise
    return [found[number] for number in sorted(found)]


def _begin(number: int, case: Case, kit: Kit, scratch: Path, given: argparse.Namespace) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:  # from here on a process of its own, which must not go back into this function's callers
        os.setpgid(0, 0)
        began = time.monotonic()
        root = scratch / f"{number:04d}"
        verdict = try_one(case, root, kit, given.seed)
        answer = [verdict.fate, verdict.reason, time.monotonic() - began]
        (scratch / f"{number}.json").write_text(json.dumps(answer))
        if given.keep and not verdict.survived:
            _keep(root, given.keep / case.title.replace("/", "--"))
        shutil.rmtree(root, ignore_errors=True)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def try_one(case: Case, root: Path, kit: Kit, seed: int) -> Verdict:
    """The case in a sandbox below `root`."""
    try:
        case.work(Box.make(root, kit, case.dice(seed)))
    except Fate as fate:
        return Verdict(case.category, case.name, fate.kind, fate.reason)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        return Verdict(case.category, case.name, "broken case", reason)
    return Verdict(case.category, case.name, SURVIVED)


def _keep(root: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    shutil.copytree(root / "logs", to / "logs")


def _verdict(number: int, case: Case, scratch: Path, status: int) -> Verdict:
    path = scratch / f"{number}.json"
    if not path.is_file():
        return Verdict(case.category, case.name, "broken case", f"its process ended with {status}")
    fate, reason, seconds = json.loads(path.read_text())
    path.unlink()
    return Verdict(case.category, case.name, fate, reason, seconds)


if __name__ == "__main__":
    sys.exit(main())
