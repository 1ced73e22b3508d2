"""Names, commands, settings and recipes that people's scripts hold on to change on purpose only.

Where a change is meant: `make freeze` writes the files anew, and CHANGELOG.md says what changed.
"""

from __future__ import annotations

import re
from difflib import unified_diff

import pytest
import yaml
from net.surface import FOLDER, SURFACES, written
from tree import HERE

IMPORTED = re.compile(r"from manylabel([a-z_.]*) import (\w+)")
NAMED = re.compile(r"\bmanylabel((?:\.[a-z_]+)+)(?!\w)")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SURFACES)
def test_what_users_hold_on_to_is_as_it_was(name: str) -> None:
    frozen = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    now = written(name)
    changes = "\n".join(unified_diff(frozen.splitlines(), now.splitlines(), "frozen", "now", lineterm="", n=2))
    assert not changes, f"if this is meant, run `make freeze` and say it in CHANGELOG.md:\n{changes}"


def test_what_the_documentation_names_is_frozen() -> None:
    frozen = [f".{name}." for name in yaml.safe_load((FOLDER / "names.yaml").read_text(encoding="utf-8"))]
    named = set()
    for page in (HERE / "README.md", *(HERE / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        named |= {f"{module}.{name}" for module, name in IMPORTED.findall(text)} | set(NAMED.findall(text))
    assert {".heads.attach", ".explain.explain"} <= named
    assert [name for name in named if not any(one.startswith(f"{name}.") for one in frozen)] == []
