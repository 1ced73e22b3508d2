"""A model as it leaves a run: its folder, read with care, and what it is in Python."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manylabel.bundle.bundle import Bundle, TaskBundle
    from manylabel.bundle.files import as_bundle, check_answer, find_bundle, load_bundle, save_bundle

_HOME = {"Bundle": "bundle", "TaskBundle": "bundle"}  # all others are in files.py

__all__ = ["Bundle", "TaskBundle", "as_bundle", "check_answer", "find_bundle", "load_bundle", "save_bundle"]


def __getattr__(name: str) -> Any:
    """Imported when they are first used: what a model says beside its weights is read without torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME.get(name, 'files')}"), name)
