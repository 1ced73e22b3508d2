"""The sandbox of one case: a folder of its own with home, cache and temporary folder, and a neighbour whose things
nobody may touch. After every command all of it is compared with what was there before."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hostile.child import GB, NOBODY, Ending, Limits, Manners, Process, start, start_anew
from hostile.fate import Fate, worst
from hostile.folder_facts import Facts, allowed_by, facts_of, left_over, lost
from hostile.kit import Kit

TREE = Path(__file__).parents[2]
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|Exception ignored in|Fatal Python error|Segmentation fault"
)
LONGEST_REFUSAL = 20_000  # characters
SIGNALS = {2: "SIGINT", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ"}


@dataclass
class Answer:
    """What a process left behind."""

    title: str
    ending: Ending
    stdout: bytes
    stderr: bytes
    value: Any = None  # of a piece of Python

    @property
    def code(self) -> int | None:
        return self.ending.code

    @property
    def out(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    @property
    def errors(self) -> str:
        return self.stderr.decode("utf-8", "replace")

    @property
    def said(self) -> str:
        return self.out + self.errors

    def last_words(self) -> str:
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()] or [
            " ".join(self.out.split())[-200:]
        ]
        return RAW.sub("�", lines[-1])[:300]

    def json(self) -> Any:
        return strict_json(self.out, "standard output")


def strict_json(text: str, where: str) -> Any:
    """JSON as RFC 8259 has it: NaN and Infinity are none."""

    def refuse(word: str) -> float:
        raise Fate("bad output", f"{where} holds {word}, which is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Fate("bad output", f"{where} is no JSON: {error}") from None


@dataclass
class Running:
    """A process that was begun and not waited for."""

    box: Box
    title: str
    process: Process
    logs: Path

    def wait(self, until: Callable[[], bool] = lambda: False) -> Answer | None:
        """Its answer; None where `until` came first."""
        ending = self.process.wait(until)
        if ending is None:
            return None
        value = self.logs / "value"
        return Answer(
            self.title,
            ending,
            (self.logs / "out").read_bytes(),
            (self.logs / "err").read_bytes(),
            json.loads(value.read_bytes()) if value.is_file() else None,
        )

    def answer(self) -> Answer:
        answer = self.wait()
        assert answer is not None
        return answer


@dataclass
class Box:
    """root/box is where commands run; root/home, root/tmp, root/cache belong to them; root/next-door to somebody else."""

    root: Path
    kit: Kit
    dice: random.Random
    env: dict[str, str] = field(default_factory=dict)
    count: int = 0

    @classmethod
    def make(cls, root: Path, kit: Kit, dice: random.Random) -> Box:
        box = cls(root, kit, dice)
        for name in ("box", "home", "tmp", "cache", "next-door", "logs"):
            (root / name).mkdir(parents=True)
        (root / "next-door" / "diary.txt").write_text("mine alone\n")
        (root / "next-door" / "photo.jpg").write_bytes(kit.one_photo.read_bytes())
        return box

    # --- what a case prepares ---------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        return self.root / "box"

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def get(self, name: str, to: str | None = None) -> Path:
        """A copy of something in the kit: photos, run, other, tasks, half …"""
        target = self.path / (to or name)
        source = self.kit.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target)
        return target

    def cached(self) -> Path:
        """The features of the kit's photos in this box's cache; the folder that holds them."""
        shutil.copytree(self.kit.folder / "cache", self.root / "cache", dirs_exist_ok=True)
        return next((self.root / "cache" / "manylabel" / "features").iterdir())

    def write(self, name: str, content: bytes | str, mode: int | None = None) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        if mode is not None:
            path.chmod(mode)
        return path

    # --- what it runs -----------------------------------------------------------------------------------------------

    def start(
        self,
        *arguments: str | Path | bytes,
        python: Callable[[], Any] | None = None,
        program: Sequence[str] | None = None,
        fresh: bool = False,
        env: dict[str, str | None] | None = None,
        limits: Limits | None = None,
        manners: dict[str, Any] | None = None,
        folder: Path | None = None,
    ) -> Running:
        """Begin a command, a function (its result becomes `value`), or another program."""
        self.count += 1
        logs = self.root / "logs" / str(self.count)
        logs.mkdir()
        words = [os.fsdecode(word) for word in arguments]
        merged = {**self._env(), **self.env, **(env or {})}
        surroundings = Manners(
            folder or self.path, {k: v for k, v in merged.items() if v is not None}, **(manners or {})
        )
        title = f"manylabel {' '.join(words)}" if python is None else f"python: {getattr(python, '__name__', 'code')}"
        if surroundings.nobody and os.getuid() == 0:
            _hand_over(self.root)
        limits = limits or Limits()
        if fresh or program:
            command = list(program or [sys.executable, "-m", "manylabel", *words])
            process = start_anew(command, surroundings, limits, logs / "out", logs / "err")
        else:
            work = _command(words) if python is None else _python(python, logs / "value")
            process = start(work, surroundings, limits, logs / "out", logs / "err")
        return Running(self, title if program is None else " ".join(map(str, program))[:80], process, logs)

    def run(
        self,
        *arguments: str | Path | bytes,
        codes: Iterable[int] = (0,),
        writes: Iterable[str] = (),
        keeps: Iterable[str] = (),
        says: str | None = None,
        silent_about: str | None = None,
        memory: float | None = None,
        cpu: float | None = None,
        **more: Any,
    ) -> Answer:
        """Run it and judge everything that must hold of any command. Patterns below box/: `writes` is what it may write,
        `keeps` what it must leave alone even so."""
        limits = more.pop("limits", None) or Limits()
        if memory is not None:
            limits = replace(limits, memory=int(memory))
        if cpu is not None:
            limits = replace(limits, cpu=cpu)
        before = self.facts()
        answer = self.start(*arguments, limits=limits, **more).answer()
        self.judge(answer, before, set(codes), writes, keeps, limits)
        if says is not None and not re.search(says, answer.said, re.IGNORECASE):
            raise Fate("wrong answer", f"nothing is said like {says!r}: {answer.last_words()}")
        if silent_about is not None and re.search(silent_about, answer.said, re.IGNORECASE):
            raise Fate("wrong answer", f"{silent_about!r} is said: {answer.last_words()}")
        return answer

    def python(self, work: Callable[[], Any], **more: Any) -> Any:
        """What the function returns in a process of its own, judged as a command is."""
        return self.run(python=work, **more).value

    def facts(self) -> Facts:
        return {path: fact for path, fact in facts_of(self.root).items() if not path.startswith("logs")}

    def judge(
        self,
        answer: Answer,
        before: Facts,
        codes: set[int],
        writes: Iterable[str] = (),
        keeps: Iterable[str] = (),
        limits: Limits | None = None,
    ) -> None:
        """Raise what is wrong with how this ended, what it said and what it left."""
        limits = limits or Limits()
        found = [fate for fate in (_ended(answer, codes, limits), _spoke(answer)) if fate is not None]
        found += self.compared(before, writes, keeps)
        fate = worst(found)
        if fate is not None:
            raise Fate(fate.kind, f"{fate.reason}  [{answer.title[-160:]}]")

    def compared(self, before: Facts, writes: Iterable[str], keeps: Iterable[str] = ()) -> list[Fate]:
        """What of all that was there is lost, and what is new unasked."""
        allowed = [f"box/{pattern}" for pattern in writes] + ["cache/**", "home/.cache/**"]
        after = self.facts()
        found = []
        kept = {
            path: fact for path, fact in before.items() if allowed_by(path, [f"box/{pattern}" for pattern in keeps])
        }
        if gone := [*lost(kept, after, ()), *lost(_without(before, kept), after, allowed)]:
            found.append(Fate("lost", _some(gone)))
        if left := left_over(before, after, allowed):
            found.append(Fate("left over", _some(left)))
        return found

    def _env(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "PYTHONPATH": str(TREE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(self.kit.folder / "matplotlib"),  # torch makes a folder when it is imported
            "MPLCONFIGDIR": str(self.kit.folder / "matplotlib"),
            "LANG": "C.UTF-8",
            "COLUMNS": "160",
            "NO_COLOR": "1",
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
        }

    # --- what it expects beyond ---------------------------------------------------------------------------------------

    def expect(self, holds: Any, reason: str) -> None:
        if not holds:
            raise Fate("wrong answer", reason)

    def json_file(self, name: str) -> Any:
        path = self.path / name
        self.expect(path.is_file(), f"{name} was not written")
        try:
            return strict_json(path.read_text(encoding="utf-8"), name)
        except UnicodeDecodeError as error:
            raise Fate("bad output", f"{name} is no UTF-8: {error}") from None


def finite(value: Any) -> bool:
    """Whether every number in these JSON values is one."""
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _without(facts: Facts, others: Facts) -> Facts:
    return {path: fact for path, fact in facts.items() if path not in others}


def _some(lines: list[str]) -> str:
    return RAW.sub("�", "; ".join(lines[:4]) + (f"; and {len(lines) - 4} more" if len(lines) > 4 else ""))


def _ended(answer: Answer, codes: set[int], limits: Limits) -> Fate | None:
    end = answer.ending
    if end.hung:
        return Fate("hang", f"asleep for {limits.sleeping:g} s")
    if end.late:
        return Fate("hang", f"not done after {limits.wall:g} s")
    if end.signal is not None and -end.signal not in codes:
        if end.signal in (24, 9) and end.cpu > limits.cpu:
            return Fate("slow", f"more than {limits.cpu:g} s of work")
        return Fate("killed", f"by {SIGNALS.get(end.signal, end.signal)}")
    if TRACEBACK.search(answer.said):
        if "MemoryError" in answer.said or "can't allocate memory" in answer.said:
            return Fate("memory", answer.last_words())
        return Fate("traceback", answer.last_words())
    if end.signal is None and end.code not in codes:
        wanted = " or ".join(map(str, sorted(codes)))
        return Fate("wrong code", f"exit code {end.code}, not {wanted}: {answer.last_words()}")
    if end.memory > limits.memory:
        return Fate("memory", f"{end.memory / 1e6:.0f} MB, {limits.memory / 1e6:.0f} are allowed")
    if end.cpu > limits.cpu:
        return Fate("slow", f"{end.cpu:.0f} s of work, {limits.cpu:g} are allowed")
    return None


def _spoke(answer: Answer) -> Fate | None:
    for name, data in (("standard output", answer.stdout), ("standard error", answer.stderr)):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            return Fate("bad output", f"{name} is no UTF-8 ({error})")
        if raw := RAW.search(text):
            around = text[max(0, raw.start() - 20) : raw.end() + 20]
            return Fate("bad output", f"{name} holds the raw control character {raw[0]!r}: {around!r}")
    if answer.code == 2 and not answer.errors.strip(" \n:"):
        return Fate("bad output", "refused without a reason")
    if answer.code == 2 and len(answer.errors) > LONGEST_REFUSAL:
        return Fate("bad output", f"a refusal of {len(answer.errors)} characters")
    return None


def _hand_over(root: Path) -> None:
    """Everything in the box to the one who will run the command."""
    for folder, names, files in os.walk(os.fsencode(root)):
        for name in [b"", *names, *files]:
            os.chown(os.path.join(folder, name), NOBODY, NOBODY, follow_symlinks=False)


def _command(words: list[str]) -> Callable[[], int]:
    def work() -> int:
        import torch

        from manylabel.cli import main

        torch.set_num_threads(1)
        sys.argv = ["manylabel", *words]
        main()
        return 0

    return work


def _python(function: Callable[[], Any], path: Path) -> Callable[[], int]:
    def work() -> int:
        import torch

        torch.set_num_threads(1)
        found = function()
        path.write_text(json.dumps(found))
        return 0

    return work


__all__ = ["GB", "Answer", "Box", "Fate", "Limits", "Running", "finite", "strict_json"]
