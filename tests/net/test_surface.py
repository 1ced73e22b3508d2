"""Names, commands, settings and recipes that people's scripts hold on to change on purpose only.

Where a change is meant: `make freeze` writes the files anew, and CHANGELOG.md says what changed.
"""

from __future__ import annotations

from difflib import unified_diff

import pytest
from net.surface import FOLDER, SURFACES, written


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SURFACES)
def test_what_users_hold_on_to_is_as_it_was(name: str) -> None:
    frozen = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    now = written(name)
    changes = "\n".join(unified_diff(frozen.splitlines(), now.splitlines(), "frozen", "now", lineterm="", n=2))
    assert not changes, f"if this is meant, run `make freeze` and say it in CHANGELOG.md:\n{changes}"
