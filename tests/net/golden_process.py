"""`manylabel COMMAND` in a process of its own that need not load torch again: it is forked from a server that has."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HEAVY = [
    "accelerate",
    "jinja2",
    "matplotlib.pyplot",
    "numpy",
    "PIL.Image",
    "pycocotools.mask",
    "rich.progress",
    "safetensors.torch",
    "timm",
    "torch",
    "torch.utils.flop_counter",
    "torchvision.transforms.v2",
    "typer",
    "yaml",
]
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(HEAVY)  # other people's modules only: the package itself is loaded by every process anew
WAIT = 600.0  # seconds


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    arguments: tuple[str, ...]
    code: int
    out: str
    errors: str

    def problem(self) -> str:
        """One paragraph for a person."""
        said = " | ".join(line for line in self.errors.strip().splitlines()[-4:] if line.strip())
        return f"manylabel {' '.join(self.arguments)}: exit code {self.code}: {said}"


class Commands:
    """Commands one after another in one process, in this folder; the first that fails is the last."""

    def __init__(self, commands: Sequence[Sequence[str]], folder: Path, logs: Path) -> None:
        self.commands = [tuple(map(str, command)) for command in commands]
        self.logs = logs
        logs.mkdir(parents=True, exist_ok=True)
        self.process = SERVER.Process(target=_run_all, args=(self.commands, str(folder), str(logs)))
        self.process.start()

    def stop_when(self, reached: Callable[[], bool]) -> None:
        """Ask it to stop, as a scheduler does, as soon as this is so."""
        while self.process.is_alive() and not reached():
            time.sleep(0.002)
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, signal.SIGTERM)

    def answers(self) -> list[Answer]:
        """Of all commands that were begun, once they are done."""
        self.process.join(WAIT)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        return [
            self._answer(number, command)
            for number, command in enumerate(self.commands)
            if (self.logs / f"{number}.out").exists()
        ]

    def _answer(self, number: int, command: tuple[str, ...]) -> Answer:
        def read(kind: str) -> str:
            path = self.logs / f"{number}.{kind}"
            return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

        code = read("code")  # none where the process ended in the middle of the command
        return Answer(command, int(code) if code else self.process.exitcode or 1, read("out"), read("err"))


def _run_all(commands: list[tuple[str, ...]], folder: str, logs: str) -> None:
    os.chdir(folder)
    for number, arguments in enumerate(commands):
        for stream, kind in ((sys.stdout, "out"), (sys.stderr, "err")):
            stream.flush()
            with open(Path(logs) / f"{number}.{kind}", "wb") as file:
                os.dup2(file.fileno(), stream.fileno())
        code = _run(arguments)
        (Path(logs) / f"{number}.code").write_text(str(code))
        if code:
            return


def _run(arguments: Sequence[str]) -> int:
    """As `python -m manylabel ARGUMENTS` does it."""
    sys.argv = ["manylabel", *arguments]
    try:
        runpy.run_module("manylabel", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return int(end.code or 0)
    except BaseException:  # whatever it is, it is told as an interpreter would tell it
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
