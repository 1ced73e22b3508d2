"""Brackets without end, and texts that look like them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import real_manylabel
from hypothesis import given, settings
from hypothesis import strategies as st

from manylabel.storage import json_depth

values = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\ab', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='[{"\\a', max_size=3), inner, max_size=3)
    ),
    max_leaves=20,
)


def _depth(value: object) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inside), default=0) if isinstance(value, (dict, list)) else 0


@settings(max_examples=300, deadline=None)
@given(values, st.integers(1, 9), st.integers(0, 5))
def test_the_level_is_that_of_the_values(value: object, block: int, deepest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_depth, "BLOCK", block)
        patch.setattr(json_depth, "DEEPEST", deepest)
        text = json.dumps(value).encode()
        if _depth(value) > deepest:
            with pytest.raises(ValueError, match="nested more than"):
                json_depth.check_depth(text)
        else:
            json_depth.check_depth(text)


def test_too_deep_is_refused() -> None:
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        json_depth.check_depth(b'{"a":' * 60 + b"[" * 60)
    json_depth.check_depth(json.dumps("[" * 5000).encode())


def test_a_label_file_with_such_a_number_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text('{"images": [' + "9" * 5000 + "]}")
    answer = real_manylabel("data", "check", path)  # it ended the process
    assert answer.returncode == 2
    assert "labels.json" in answer.stderr
    assert "Integer value out of range" in answer.stderr
