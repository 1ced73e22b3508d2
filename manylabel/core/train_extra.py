"""What the extra [train] brings, and what is said where it is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from manylabel.error import ConfigError

LIBRARIES = ("accelerate", "safetensors", "timm", "torch", "torchvision")


@contextmanager
def needs_train(what: str) -> Iterator[None]:
    """One of these libraries that is missing inside becomes an error that names the command which brings it."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in LIBRARIES:
            raise
        raise ConfigError(f'{what} needs {missing}, which is not installed: pip install "manylabel[train]"') from error
