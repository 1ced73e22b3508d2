"""Parquet is an extra: where it is not installed, the error names what brings it."""

from __future__ import annotations

import sys

import pytest

from manylabel.data.shard.arrow_image import need_pyarrow
from manylabel.error import DataError


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r'Parquet needs pyarrow: pip install "manylabel\[parquet\]"'):
        need_pyarrow("Parquet")
