"""Brackets without end, and texts that look like them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from command import real_manylabel
from hypothesis import given, settings
from hypothesis import strategies as st

from manylabel.storage.json_depth import ShallowJson

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


@pytest.mark.parametrize("step", [1 << 16, 5000])
def test_a_number_of_thousands_of_digits_is_refused_before_the_parser_crashes(step: int) -> None:
    long = b"9" * 5000
    for text in (b'{"images": [' + long + b"]}", b'["' + b"x" * step + b'", ' + long + b"]", b'{"a": 0.' + long + b"}"):
        with pytest.raises(ValueError, match="a number of more than 2000 digits"):
            _read_all(ShallowJson(io.BytesIO(text)), step)
    for fine in (b'["' + long + b'"]', b"[" + b"1234567890," * 5000 + b"1]", b"[" + b"1" * 1999 + b"]"):
        _read_all(ShallowJson(io.BytesIO(fine)), step)


def test_a_label_file_with_such_a_number_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text('{"images": [' + "9" * 5000 + "]}")
    answer = real_manylabel("data", "check", path)  # it ended the process
    assert answer.returncode == 2
    assert "labels.json" in answer.stderr
    assert "Integer value out of range" in answer.stderr
