"""The trial itself: what it calls lost, left over, a hang, killed, a traceback; and what survived."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile.box import Box, Limits
from hostile.case import Case
from hostile.cases import all_cases
from hostile.fate import SURVIVED
from hostile.folder_facts import facts_of, lost
from hostile.kit import Kit
from hostile.table import BEGIN, END, PAGE, Verdict, failures, markdown, write_into
from hostile.trial import chosen, main, try_one


def ends(work: Callable[[Box], None], root: Path) -> tuple[str, str]:
    """How such a case ends in a sandbox below `root`."""
    kit = Kit(root / "kit")
    kit.folder.mkdir()
    kit.one_photo.write_bytes(b"a photo")
    verdict = try_one(Case("category", "name", work), root / "sandbox", kit, seed=0)
    return verdict.fate, verdict.reason


def _write(name: str, text: str = "x") -> Callable[[Box], None]:
    return lambda box: box.python(lambda: Path(name).write_text(text) and None, writes=["asked.txt"])


def _before(then: Callable[[Box], None]) -> Callable[[Box], None]:
    def work(box: Box) -> None:
        box.write("mine.txt", "mine")
        then(box)

    return work


def _run(function: Callable[[], object]) -> Callable[[Box], None]:
    return lambda box: box.python(function, limits=Limits(sleeping=0.5, cpu=2, wall=120))


def _spin() -> None:
    while True:
        pass


def _fill(box: Box) -> None:
    """Zeros would take no memory until somebody writes to them."""
    box.python(lambda: len(b"x" * (1 << 30)), limits=Limits(memory=1 << 28, wall=60))


def _control() -> None:
    print("a\x1b[2Jb")


def _expects_three(box: Box) -> None:
    box.expect(box.python(lambda: 1 + 1) == 3, "two")


@pytest.mark.parametrize(
    ("work", "fate", "reason"),
    [
        (_write("asked.txt"), SURVIVED, ""),
        (_before(_write("mine.txt", "yours")), "lost", "mine.txt has changed"),
        (_before(_run(lambda: os.remove("mine.txt"))), "lost", "mine.txt is gone"),
        (_before(_run(lambda: os.chmod("mine.txt", 0o600))), "lost", "had mode 644 and has 600"),
        (_run(lambda: os.remove("../next-door/diary.txt")), "lost", "diary.txt is gone"),
        (_write("unasked.txt"), "left over", "unasked.txt"),
        (_write("asked.txt.7.partial"), "left over", "partial"),
        (_run(lambda: time.sleep(60)), "hang", "asleep"),
        (_run(_spin), "slow", "more than 2 s"),
        (_run(lambda: os.kill(os.getpid(), signal.SIGKILL)), "killed", "SIGKILL"),
        (_run(lambda: 1 / 0), "traceback", "ZeroDivisionError"),
        (_run(lambda: sys.exit(3)), "wrong code", "exit code 3, not 0"),
        (_run(_control), "bad output", "raw control character"),
        (_run(lambda: os.write(1, b"\xff") and None), "bad output", "no UTF-8"),
        (_fill, "memory", ""),
        (_expects_three, "wrong answer", "two"),
        (lambda box: None, SURVIVED, ""),
        (lambda box: int("x"), "broken case", "ValueError"),
    ],
)
def test_a_case_ends_as_it_should_be_called(
    work: Callable[[Box], None], fate: str, reason: str, tmp_path: Path
) -> None:
    found, why = ends(work, tmp_path)
    assert found == fate, why
    assert reason in why


def test_what_may_be_written_does_not_cover_what_must_be_kept(tmp_path: Path) -> None:
    def work(box: Box) -> None:
        box.write("run/mine.txt", "mine")
        box.write("run/ours.txt", "ours")
        box.python(
            lambda: (os.remove("run/ours.txt"), os.remove("run/mine.txt")), writes=["run/**"], keeps=["run/mine.txt"]
        )

    assert ends(work, tmp_path)[0] == "lost"


def test_a_sparse_file_of_a_terabyte_is_compared_in_a_moment(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 10**12)
    empty = facts_of(tmp_path)
    with open(path, "r+b") as file:
        file.seek(5 * 10**11)
        file.write(b"x")
    assert lost(empty, facts_of(tmp_path), []) == ["sparse has changed"]
    before = facts_of(tmp_path)
    with open(path, "r+b") as file:
        file.seek(5 * 10**11)
        file.write(b"x" + bytes(100))
    assert lost(before, facts_of(tmp_path), []) == []


def test_a_command_runs_as_on_the_command_line(tmp_path: Path) -> None:
    def work(box: Box) -> None:
        said = box.run("settings", "train.epochs")
        assert "train.epochs = 12" in said.out
        box.run("settings", "no such thing", codes=[2], says="no setting")

    assert ends(work, tmp_path) == (SURVIVED, "")


def test_cases_have_names_of_their_own_and_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    cases = all_cases()
    assert len(cases) >= 800
    assert len({case.title for case in cases}) == len(cases)
    some = chosen(cases, ["trained photos"])
    assert some
    assert {case.category for case in some} == {"trained photos"}
    assert chosen(cases, [some[0].title.replace("[", "[[]")]) == some[:1]
    assert main(["--list", "--only", "trained photos"]) == 0
    assert capsys.readouterr().out.splitlines() == [case.title for case in some]


def test_a_case_draws_the_same_numbers_alone_and_among_others() -> None:
    case = all_cases()[0]
    assert case.dice(3).random() == case.dice(3).random() != case.dice(4).random()
    assert isinstance(case.dice(0), random.Random)


def test_the_table_counts_and_is_written_between_its_marks(tmp_path: Path) -> None:
    verdicts = [
        Verdict("a", "one", SURVIVED),
        Verdict("a", "two", "lost", "photo.jpg is gone"),
        Verdict("b", "x", SURVIVED),
    ]
    table = markdown(verdicts)
    assert "| a | 2 | 1 |" in table
    assert "| **all** | **3** | **2** |" in table
    assert failures(verdicts) == "a/two: lost: photo.jpg is gone\n"
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_into(page, table)
    assert page.read_text() == f"before\n{BEGIN}\n{table}{END}\nafter\n"
    assert BEGIN in PAGE.read_text(encoding="utf-8")
