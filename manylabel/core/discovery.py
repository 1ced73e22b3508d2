"""Finding the parts of a room: a file that lies there is known, and nobody names it a second time."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module


def import_files(package: str, path: Iterable[str]) -> None:
    """Import every file of a package (its `__name__` and `__path__`), so that what they register is there."""
    for module in pkgutil.iter_modules(path):
        import_module(f"{package}.{module.name}")
