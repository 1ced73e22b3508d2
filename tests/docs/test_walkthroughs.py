"""The walk-throughs of CONTRIBUTING.md, followed word by word in a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doc_blocks import HERE, Block, blocks, pages

PAGE = HERE / "CONTRIBUTING.md"
TITLE = "## Walk-through: "
COPIED = ("manylabel", "tests", "docs", "recipes")
LOOSE = ("pyproject.toml", "README.md", "CONTRIBUTING.md")
OTHERS = ("tests/", "docs/")  # where a walk-through may write beside its one new file


def walkthroughs(text: str) -> dict[str, list[Block]]:
    """Title → its blocks of code."""
    parts = re.split(r"^(?=## )", text, flags=re.M)
    named = {part.split("\n", 1)[0].removeprefix(TITLE): part for part in parts if part.startswith(TITLE)}
    return {title: blocks(part) for title, part in named.items()}


FOUND = walkthroughs(PAGE.read_text(encoding="utf-8"))


def follow(steps: list[Block], tree: Path) -> list[str]:
    """Write the files and run the commands, one after another; the new files of the package. A row of a table that is there
    already goes to the end of the table."""
    new = []
    for step in steps:
        path = tree / step.file
        if step.kind == "shell":
            for _, command in step.commands():
                done = _run(command, tree)
                assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        elif path.suffix == ".md":
            path.write_text(_with_row(path.read_text(encoding="utf-8"), step.content), encoding="utf-8")
        else:
            assert step.file, f"nothing says what to do with line {step.line} of the walk-through:\n{step.text}"
            assert not path.exists(), f"{step.file} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.content, encoding="utf-8")
            new += [] if step.file.startswith(OTHERS) else [step.file]
    return new


def _run(command: str, tree: Path) -> subprocess.CompletedProcess[str]:
    plain = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command_line = [sys.executable, *_arguments(command)]
    return subprocess.run(command_line, cwd=tree, env=plain, capture_output=True, text=True, timeout=500)


def _arguments(command: str) -> list[str]:
    """Of Python, in this environment."""
    program, *words = command.split()
    if command == "make freeze":  # as the Makefile does, without making an environment
        return ["tests/net/freeze.py"]
    assert program == ".venv/bin/pytest", f"nobody here knows how to run {program}"
    return ["-m", "pytest", "-q", "-p", "no:randomly", *words]


def _with_row(page: str, row: str) -> str:
    """In the first table of the page."""
    lines = page.splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    last = next(i for i in range(first, len(lines) + 1) if i == len(lines) or not lines[i].startswith("|"))
    return "".join([*lines[:last], row, *lines[last:]])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What a walk-through is followed in."""
    leave = shutil.ignore_patterns("__pycache__", "*.xz")
    for name in COPIED:
        shutil.copytree(HERE / name, tmp_path / "tree" / name, ignore=leave)
    for name in LOOSE:
        shutil.copy(HERE / name, tmp_path / "tree" / name)
    return tmp_path / "tree"


@pytest.mark.slow
@pytest.mark.parametrize("title", FOUND)
def test_a_walkthrough_leads_where_it_says(title: str, tree: Path) -> None:
    """One new file in the package, a test, and docs."""
    steps = FOUND[title]
    assert {"shell", "file"} == {step.kind for step in steps}
    assert len(follow(steps, tree)) == 1
    written = [step.file for step in steps if step.file]
    assert any(file.startswith("tests/") for file in written)
    assert any(file.startswith("docs/") for file in written)


def test_one_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.py").write_text("")
    text = "## Walk-through: fail\n\n```\n# manylabel/a.py\nx = 1\n```\n\n    .venv/bin/pytest no/such.py\n\n## End\n"
    ((title, steps),) = walkthroughs(text).items()
    assert title == "fail"
    assert [step.kind for step in steps] == ["file", "shell"]
    with pytest.raises(AssertionError, match="no/such.py"):
        follow(steps, tmp_path)
    assert (tmp_path / "manylabel" / "a.py").read_text() == "x = 1\n"
    with pytest.raises(AssertionError, match="is there already"):
        follow(steps[:1], tmp_path)
    assert _with_row("a\n| b |\n|---|\nc\n", "| d |\n") == "a\n| b |\n|---|\n| d |\nc\n"


def test_files_are_written_in_walkthroughs_only() -> None:
    """Nobody looks at such a block elsewhere."""
    found = {page.name: [b.file for b in blocks(page.read_text(encoding="utf-8")) if b.file] for page in pages()}
    assert {page for page, files in found.items() if files} == {PAGE.name}
    assert found[PAGE.name] == [block.file for steps in FOUND.values() for block in steps if block.file]
