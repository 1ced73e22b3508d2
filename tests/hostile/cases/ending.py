"""Processes that are killed or stopped at any moment, and several at once."""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from hostile.box import Answer, Box, Fate, Limits
from hostile.case import Collection
from hostile.folder_facts import lost
from hostile.kit import LONG, LONG_TASKS, QUICK, weights_of

WORDS: dict[str, tuple[list[str], list[str]]] = {
    "predict --csv": (["predict", "run", "photos/images", "--csv", "out.csv"], ["out.csv"]),
    "predict --label-studio": (
        ["predict", "run", "photos/images", "--label-studio", "o.json"],
        ["o.json", "label_config.xml"],
    ),
    "data convert imagefolder": (
        ["data", "convert", "photos", "c", "--to", "imagefolder", "--images", "copy"],
        ["c/**"],
    ),
    "data convert coco": (["data", "convert", "photos", "c.json", "--to", "coco"], ["c.json"]),
    "data split": (["data", "split", "photos", "--out", "s.csv"], ["s.csv"]),
    "data check": (["data", "check", "photos", "--json", "c.json", "--html", "c.html"], ["c.json", "c.html"]),
    "evaluate": (["evaluate", "run", "--json", "e.json", "--report", "e.html"], ["e.json", "e.html"]),
    "compare": (["compare", "run", "other", "--resamples", "100"], ["comparison/**"]),
    "explain": (["explain", "run", "photos/images"], ["explanations/**"]),
    "hard": (["hard", "run", "--resamples", "0", "--out", "h"], ["h/**"]),
    "report": (["report", "run", "--out", "r.html"], ["r.html"]),
}


def groups() -> Iterator[Collection]:
    yield _killed()
    yield _stopped()
    yield _at_once()


def _train(box: Box, several: bool) -> tuple[list[str], float]:
    """The words of a long run, and how many seconds it takes in the kit."""
    if several:
        return ["train", "--recipe", str(box.kit.folder / "small.yaml"), *LONG_TASKS], box.kit.seconds["long-tasks"]
    return ["train", str(box.kit.photos), *LONG], box.kit.seconds["long"]


def _prepare(box: Box) -> None:
    for name in ("run", "other", "photos"):
        box.get(name)


def _unharmed(box: Box, before: Any, writes: Sequence[str]) -> None:
    """What was there before is there; what a killed process leaves half-written may lie beside."""
    allowed = [f"box/{pattern}" for pattern in writes] + ["cache/**", "tmp/**", "home/.cache/**"]
    if gone := lost(before, box.facts(), allowed):
        raise Fate("lost", "; ".join(gone[:4]))


def _sweep(box: Box) -> None:
    """What a killed process could not take away."""
    for path in [*box.path.rglob("*.partial"), *(box.root / "cache").rglob("*.partial")]:
        path.unlink()
    shutil.rmtree(box.root / "tmp")
    (box.root / "tmp").mkdir()


def _resumed(box: Box, words: list[str], out: str, several: bool) -> None:
    """Going on ends with the weights of a run that nobody touched."""
    again = ["train", "--resume", "--out", out] if (box / out / "config.yaml").is_file() else [*words, "--out", out]
    box.run(*again, writes=[f"{out}/**"], limits=Limits(cpu=200, wall=600, sleeping=20))
    same = weights_of(box / out) == weights_of(box.kit.folder / ("long-tasks" if several else "long"))
    box.expect(same, "it ended with other weights than a run that nobody stopped")


def _killed() -> Collection:
    made = Collection("killed")

    def train(number: int, several: bool, cached: bool) -> None:
        def work(box: Box) -> None:
            words, seconds = _train(box, several)
            if cached:
                box.cached()
            before = box.facts()
            running = box.start(*words, "--out", "new", limits=Limits(cpu=200, wall=600, sleeping=20))
            until = time.monotonic() + seconds * box.dice.random() * 1.1
            if running.wait(lambda: time.monotonic() > until) is None:
                running.process.kill(signal.SIGKILL)
                running.answer()
            _unharmed(box, before, ["new/**"])
            shutil.rmtree(box.root / "tmp")
            (box.root / "tmp").mkdir()
            _resumed(box, words, "new", several)

        made.add(f"train{' of tasks' * several}{' from the cache' * cached} {number:02d}", work)

    for number in range(20):
        train(number, False, number % 2 == 0)
    for number in range(8):
        train(number, True, False)

    def in_the_bundle(number: int, several: bool) -> None:
        def work(box: Box) -> None:
            words, _ = _train(box, several)
            running = box.start(*words, "--out", "new", limits=Limits(cpu=200, wall=600, sleeping=20))
            bundle = box / "new" / "bundle"
            running.wait(bundle.exists)
            time.sleep(0.004 * number)
            running.process.kill(signal.SIGKILL)
            running.answer()
            box.get("photo.jpg")
            more = ["--task", "labels"] if several else []
            box.run("predict", "new", "photo.jpg", *more, codes=[0, 2])
            _sweep(box)
            _resumed(box, words, "new", several)

        made.add(f"train{' of tasks' * several} while the bundle is written {number}", work)

    for number in range(5):
        in_the_bundle(number, False)
    for number in range(3):
        in_the_bundle(number, True)

    def command(name: str, number: int) -> None:
        def work(box: Box) -> None:
            _prepare(box)
            words, writes = WORDS[name]
            before = box.facts()
            running = box.start(*words)
            until = time.monotonic() + 0.05 + box.dice.random() * (2.5 if name in ("explain", "compare") else 0.8)
            if running.wait(lambda: time.monotonic() > until) is None:
                running.process.kill(signal.SIGKILL)
                running.answer()
            _unharmed(box, before, writes)
            if (box / "out.csv").exists():
                box.expect(len(list(csv.reader(open(box / "out.csv", encoding="utf-8")))) == 29, "half a CSV")  # noqa: SIM115
            for path in box.path.glob("*.json"):
                box.json_file(path.name)
            _sweep(box)
            again = box.run(*words, codes=[0, 2], writes=writes)
            if again.code == 2:
                box.run(*words, "--overwrite", writes=writes)

        made.add(f"{name} {number}", work)

    for name in WORDS:
        for number in range(3):
            command(name, number)
    return made


def _stopped() -> Collection:
    made = Collection("stopped")

    def train(number: int, several: bool, how: int, group: bool = False, twice: bool = False) -> None:
        def work(box: Box) -> None:
            words, seconds = _train(box, several)
            before = box.facts()
            running = box.start(*words, "--out", "new", limits=Limits(cpu=200, wall=600, sleeping=20))
            until = time.monotonic() + seconds * box.dice.random()
            if running.wait(lambda: time.monotonic() > until) is None:
                (running.process.signal_group if group else running.process.kill)(how)
                if twice:
                    time.sleep(0.01)
                    running.process.kill(how)
            answer = running.answer()
            codes = {0, 128 + how, -how}
            if twice:  # at once: then what is half-written stays
                _unharmed(box, before, ["new/**"])
                box.expect(answer.code in codes or answer.ending.signal == how, f"exit code {answer.code}")
                _sweep(box)
            else:
                box.judge(answer, before, codes, ["new/**"])
            _resumed(box, words, "new", several)

        name = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}[signal.Signals(how)]
        made.add(f"train{' of tasks' * several}: {name}{' twice' * twice}{' to all' * group} {number:02d}", work)

    for number in range(9):
        for how in (signal.SIGINT, signal.SIGTERM):
            train(number, False, how, group=number % 3 == 0)
    for number in range(4):
        for how in (signal.SIGINT, signal.SIGTERM):
            train(number, True, how)
        train(number, False, signal.SIGINT, twice=True)

    def command(name: str, number: int) -> None:
        def work(box: Box) -> None:
            _prepare(box)
            words, writes = WORDS[name]
            before = box.facts()
            running = box.start(*words)
            until = time.monotonic() + 0.05 + box.dice.random() * (2.5 if name in ("explain", "compare") else 0.7)
            if running.wait(lambda: time.monotonic() > until) is None:
                running.process.kill(signal.SIGINT)
            box.judge(running.answer(), before, {0, 130, -2}, writes)
            again = box.run(*words, codes=[0, 2], writes=writes)
            if again.code == 2:
                box.run(*words, "--overwrite", writes=writes)

        made.add(f"{name}: Ctrl-C {number}", work)

    for name in WORDS:
        for number in range(3):
            command(name, number)
    return made


def _at_once() -> Collection:
    """Two processes that want the same folder: one has it, the other says who."""
    made = Collection("two at once")

    def seed_of(box: Box, out: str) -> int:
        return int(yaml.safe_load((box / out / "config.yaml").read_text())["train"]["seed"])

    def whole(box: Box, out: str, several: bool) -> None:
        """The folder holds one run: its weights are those of its settings."""
        kind = "long-tasks" if several else "long"
        seed = seed_of(box, out)
        if seed == 0:
            right = box.kit.folder / kind
        else:
            words, _ = _train(box, several)
            box.run(
                *words,
                "--seed",
                str(seed),
                "--out",
                "right",
                writes=["right/**"],
                limits=Limits(cpu=200, wall=600, sleeping=20),
            )
            right = box / "right"
        box.expect(weights_of(box / out) == weights_of(right), f"the settings say seed {seed}, the weights are others")

    def names_the_other(box: Box, one: Answer, other: Answer) -> None:
        refused = one if one.code == 2 else other
        box.expect(re.search(r"\d{2,}", refused.errors), f"the other process is not named: {refused.last_words()}")

    def race(
        name: str, first: list[str], second: list[str], several: tuple[bool, bool], start: str | None = None
    ) -> None:
        def work(box: Box) -> None:
            limits = Limits(cpu=200, wall=600, sleeping=60)
            if start:
                box.get(start, "new")
            words = [_train(box, one)[0] for one in several]
            asked = [
                ["train", "--resume", "--out", "new"] if more == ["--resume"] else [*each, *more, "--out", "new"]
                for each, more in zip(words, (first, second), strict=True)
            ]
            before = box.facts()
            one = box.start(*asked[0], limits=limits)
            wait = box.dice.choice((0.0, 0.0, 0.02, 0.05, 0.1, 0.3))
            if second == ["--resume"] and not start:
                one.wait((box / "new" / "config.yaml").exists)
            elif "--overwrite" in second:
                one.wait(lambda: bool(list((box / "new").glob("checkpoints/*.json"))))
            time.sleep(wait)
            other = box.start(*asked[1], limits=limits)
            answers = [one.answer(), other.answer()]
            allowed = ["new/**"]
            for answer in answers:
                box.judge(answer, before, {0, 2}, allowed, limits=limits)
            codes = sorted(answer.code or 0 for answer in answers)
            box.expect(codes != [2, 2], "both gave up")
            if codes == [0, 2]:
                names_the_other(box, *answers) if answers[1].ending.wall < answers[0].ending.wall else None
            else:
                # one after the other is right, too, but only where somebody asked to replace or to go on
                box.expect(second == ["--resume"] or "--overwrite" in second, "both were let in")
            if several[0] == several[1]:
                whole(box, "new", several[0])

        made.add(name, work)

    for number in range(8):
        race(f"two seeds in one folder {number}", ["--seed", "0"], ["--seed", "1"], (False, False))
    for number in range(6):
        race(f"--overwrite while it trains {number}", ["--seed", "0"], ["--seed", "1", "--overwrite"], (False, False))
    for number in range(4):
        race(f"--resume while it trains {number}", ["--seed", "0"], ["--resume"], (False, False))
        race(f"two resume {number}", ["--resume"], ["--resume"], (False, False), "half")
    for number in range(3):
        race(f"two seeds of tasks {number}", ["--seed", "0"], ["--seed", "1"], (True, True))
        race(f"one task and several {number}", [], [], (False, True))
    race("tasks: --overwrite while it trains", ["--seed", "0"], ["--seed", "1", "--overwrite"], (True, True))
    race("tasks: two resume", ["--resume"], ["--resume"], (True, True), "half-tasks")

    def beside(name: str, words: list[str], writes: list[str]) -> None:
        def work(box: Box) -> None:
            """Somebody reads a run while it is trained anew."""
            for kit in ("run", "other", "photo.jpg"):
                box.get(kit)
            long, _ = _train(box, False)
            before = box.facts()
            training = box.start(*long, "--out", "run", "--overwrite", limits=Limits(cpu=200, wall=600, sleeping=20))
            for _ in range(3):
                answer = box.start(*words).answer()
                if answer.code not in (0, 2) or "Traceback" in answer.said:
                    training.process.kill(signal.SIGKILL)
                    training.answer()
                    raise Fate("traceback", answer.last_words())
            box.judge(training.answer(), before, {0}, ["run/**", *writes])
            whole(box, "run", False)

        made.add(f"{name} while the run is trained anew", work)

    beside("predict", ["predict", "run", "photo.jpg"], [])
    beside("evaluate", ["evaluate", "run"], [])
    beside("report", ["report", "run", "--out", "r.html"], ["r.html"])
    beside("compare", ["compare", "run", "other", "--resamples", "0"], ["comparison/**"])
    beside("explain", ["explain", "run", "photo.jpg"], ["explanations/**"])

    def pair(name: str, number: int) -> None:
        def work(box: Box) -> None:
            _prepare(box)
            words, writes = WORDS[name]
            before = box.facts()
            one = box.start(*words)
            other = box.start(*words)
            answers = [one.answer(), other.answer()]
            for answer in answers:
                box.judge(answer, before, {0, 2}, writes)
            box.expect(any(answer.code == 0 for answer in answers), "both gave up")
            for path in box.path.glob("*.json"):
                box.json_file(path.name)

        made.add(f"{name} twice at once {number}", work)

    for name in ("predict --csv", "data convert imagefolder", "data convert coco", "data split", "compare"):
        for number in range(2):
            pair(name, number)

    @made.case("two runs that compute the same features")
    def _(box: Box) -> None:
        words, _ = _train(box, False)
        before = box.facts()
        limits = Limits(cpu=200, wall=600, sleeping=60)
        both = [box.start(*words, "--out", f"new{number}", limits=limits) for number in range(2)]
        for running in both:
            box.judge(running.answer(), before, {0}, ["new0/**", "new1/**"], limits=limits)
        for number in range(2):
            box.expect(weights_of(box / f"new{number}") == weights_of(box.kit.folder / "long"), "other weights")

    @made.case("the cache is pruned while a run uses it")
    def _(box: Box) -> None:
        box.cached()
        words, _ = _train(box, False)
        before = box.facts()
        limits = Limits(cpu=200, wall=600, sleeping=60)
        running = box.start(*words, "--out", "new", limits=limits)
        running.wait((box / "new" / "config.yaml").exists)
        pruned = box.start("cache", "prune", "--all").answer()
        box.judge(running.answer(), before, {0, 2}, ["new/**"], limits=limits)
        box.judge(pruned, before, {0}, ["new/**"], limits=limits)

    @made.case("a lock that a killed run left")
    def _(box: Box) -> None:
        words, _ = _train(box, False)
        running = box.start(*words, "--out", "new", limits=Limits(cpu=200, wall=600, sleeping=20))
        running.wait(lambda: bool(list((box / "new").glob("checkpoints/*.json"))))
        running.process.kill(signal.SIGKILL)
        running.answer()
        shutil.rmtree(box.root / "tmp")
        os.mkdir(box.root / "tmp")
        _resumed(box, words, "new", False)
        box.run("train", str(box.kit.photos), *QUICK, "--out", "new", "--overwrite", writes=["new/**"])

    return made
