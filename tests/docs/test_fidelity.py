"""docs/fidelity.md: every item of the papers has a state, and what it names is there."""

from __future__ import annotations

import re

import pytest
from doc_blocks import HERE, blocks
from doc_names import problems, unknown_setting

from manylabel.config.recipe import recipe_names

PAGE = (HERE / "docs" / "fidelity.md").read_text(encoding="utf-8")
STATES = ("complete", "recipe", "not run", "deviates")
PAPERS = {"ML-Decoder": 68, "HSQ": 47, "Representation mixup": 49, "AdaMV-MoE": 56}  # items that a close reading found
FILE = re.compile(r"[\w.-]+(/[\w.*-]+)+\.(py|yaml|md|json)")


def papers() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(text: str) -> list[list[str]]:
    """(item, state, where) of every line of a table but its head."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not re.match(r"\|[-| ]+\|$", line)]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[1].lower() != "state"]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_item_has_a_state_and_a_place(paper: str) -> None:
    found = rows(papers()[paper])
    assert len(found) >= PAPERS[paper]
    wrong = [row for row in found if len(row) != 3 or not row[1].strip("*").startswith(STATES) or not row[2]]
    assert not wrong


def test_files_and_recipes_are_there() -> None:
    named = re.findall(r"`([^`]+)`", PAGE)
    files = [name for name in named if FILE.fullmatch(name)]
    assert len(files) > 100
    assert not [name for name in files if not list(HERE.glob(name))]
    recipes = re.findall(r"--recipe ([\w-]+)", PAGE)
    assert len(recipes) > 20
    assert not set(recipes) - set(recipe_names())


def test_commands_can_be_typed_and_settings_exist() -> None:
    spans = re.findall(r"`([^`]+)`", PAGE)
    commands = [span for span in spans if span.startswith(("manylabel ", "make "))]
    commands += [line for block in blocks(PAGE) if block.kind == "shell" for _, line in block.commands()]
    assert len(commands) > 10
    wrong = {command: found for command in commands if (found := problems(command))}
    keys = {m[1] for span in spans if (m := re.fullmatch(r"([a-z_]+(?:\.[a-z_]+)+)=[^ ]*", span))}
    assert len(keys) > 15
    assert not wrong, wrong
    assert not {key for key in keys if unknown_setting(key)}
