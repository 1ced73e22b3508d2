"""What counts as noticing a planted bug, in a small tree of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import plant
import pytest
from plant import Bug, copy_to, noticed

BUG = Bug("answer", "answer.py", "42", "41")
FINE = "def test_something_else():\n    pass\n"
NOTICE = {
    "a test": """
def test_it():
    assert ANSWER == 42
""",
    "a fixture": """
import pytest

@pytest.fixture
def answer():
    assert ANSWER == 42

def test_it(answer):
    pass
""",
    "a file": """
assert ANSWER == 42

def test_it():
    pass
""",
    "a test among others that fail anyway": """
import pytest

@pytest.mark.parametrize("name", ["a - b", "c"])
def test_broken(name):
    assert False

def test_it():
    assert ANSWER == 42
""",
}
DO_NOT = {
    "no test": "",
    "one that fails anyway": """
def test_broken():
    assert False
""",
    "one that fails now and then": """
from pathlib import Path

def test_of_a_mood():
    mood = Path("mood.txt")
    mood.write_text(mood.read_text() + "x" if mood.exists() else "x")
    assert len(mood.read_text()) > 1
""",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree with a package, of which no test knows anything yet."""
    here = tmp_path / "here"
    for folder in ("manylabel", "first", "then"):
        (here / folder).mkdir(parents=True)
    (here / "manylabel" / "__init__.py").touch()
    (here / "manylabel" / "answer.py").write_text("ANSWER = 42\n", encoding="utf-8")
    (here / "first" / "test_first.py").write_text(FINE, encoding="utf-8")
    (here / "pytest.ini").write_text(
        "[pytest]\naddopts = -n 0 -p no:randomly -p no:hypothesispytest -p no:cov\n", encoding="utf-8"
    )
    subprocess.run(["git", "init", "-q", here], check=True)
    monkeypatch.setattr(plant, "HERE", here)
    monkeypatch.setattr(plant, "FIRST", ("first",))
    monkeypatch.setattr(plant, "THEN", ("then",))
    return here


def _noticed(tree: Path, tests: str) -> bool:
    (tree / "then" / "test_then.py").write_text(f"from manylabel.answer import ANSWER\n{tests}", encoding="utf-8")
    control = tree.with_name("control")
    copy_to(control)
    return noticed(BUG, control, [])


@pytest.mark.parametrize("who", NOTICE)
def test_what_fails_for_the_bug_has_noticed_it(tree: Path, who: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _noticed(tree, NOTICE[who])
    said = capsys.readouterr().out
    assert "noticed by then/test_then.py" in said
    assert said.count("not counted") == (2 if "others" in who else 0)


@pytest.mark.parametrize("who", DO_NOT)
def test_what_fails_for_another_reason_has_not(tree: Path, who: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert not _noticed(tree, DO_NOT[who])
    said = capsys.readouterr().out
    assert "NOT NOTICED" in said
    assert said.count("not counted") == bool(DO_NOT[who])


def test_what_cannot_begin_is_told(tree: Path) -> None:
    (tree / "conftest.py").write_text("import nothing_of_that_name", encoding="utf-8")
    with pytest.raises(SystemExit, match="nothing_of_that_name"):
        _noticed(tree, "")


def test_a_bug_whose_place_is_gone_is_told(tree: Path) -> None:
    (tree / "manylabel" / "answer.py").write_text("ANSWER = 40 + 2\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"'answer' cannot be planted: manylabel/answer.py does not hold '42' once"):
        _noticed(tree, "")
