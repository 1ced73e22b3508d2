"""What every use of ONNX begins with: whether it is installed, and an exporter that keeps quiet."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator

from manylabel.error import ConfigError


def need_onnx() -> None:
    for name in ("onnxruntime", "onnxscript"):
        try:
            __import__(name)
        except ImportError as error:
            raise ConfigError(f'{name} is not installed: pip install "manylabel[onnx]"') from error


@contextlib.contextmanager
def quiet_export() -> Iterator[None]:
    """The exporter talks about its own insides."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
