"""Brackets without end, and texts that look like them."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manylabel.data.read.text_file import ShallowJson

values = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\ab', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='[{"\\a', max_size=3), inner, max_size=3)
    ),
    max_leaves=20,
)


def _read_all(stream: ShallowJson, step: int) -> int:
    deepest = 0
    while stream.read(step):
        deepest = max(deepest, stream.depth)
    return deepest


def _depth(value: object) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inside), default=0) if isinstance(value, (dict, list)) else 0


@settings(max_examples=300, deadline=None)
@given(values, st.integers(1, 9))
def test_the_level_is_that_of_the_values(value: object, step: int) -> None:
    text = json.dumps(value).encode()
    stream = ShallowJson(io.BytesIO(text))
    _read_all(stream, step)
    assert (stream.depth, stream.in_text) == (0, False)
    assert _read_all(ShallowJson(io.BytesIO(text)), 1) == _depth(value)


def test_too_deep_is_refused_at_once() -> None:
    stream = ShallowJson(io.BytesIO(b'{"a":' * 60 + b"[" * 60))
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        _read_all(stream, 50)
    assert _read_all(ShallowJson(io.BytesIO(json.dumps("[" * 5000).encode())), 64) == 0
