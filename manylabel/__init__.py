"""manylabel recognises everything in an image at once.

import manylabel as ml
run = ml.train("photos/", out="runs/mine")
print(ml.Predictor.load(run.folder).predict("holiday.jpg")[0].present)
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from manylabel.core.train_extra import needs_train
from manylabel.runtime import fork as _fork  # noqa: F401  (it must know which process this is before a child is forked)
from manylabel.version import VERSION

if TYPE_CHECKING:
    from manylabel.bundle import Bundle, load_bundle
    from manylabel.data.read import load_data
    from manylabel.data.table import Table
    from manylabel.error import ManylabelError
    from manylabel.exporting import Exported, export
    from manylabel.inference.prediction import Prediction
    from manylabel.inference.predictor import Predictor
    from manylabel.run import RunResult, evaluate, train

__version__ = VERSION

_HOME = {
    "Bundle": "bundle",
    "load_bundle": "bundle",
    "load_data": "data.read",
    "Table": "data.table",
    "Exported": "exporting",
    "ManylabelError": "error",
    "Prediction": "inference.prediction",
    "Predictor": "inference.predictor",
    "RunResult": "run",
    "evaluate": "run",
    "export": "exporting",
    "train": "run",
}
_EARLIER = {"TaskPredictor": "Predictor", "MultiTaskResult": "RunResult"}  # names of earlier versions

__all__ = [
    "Bundle",
    "Exported",
    "ManylabelError",
    "Prediction",
    "Predictor",
    "RunResult",
    "Table",
    "evaluate",
    "export",
    "load_bundle",
    "load_data",
    "train",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used, so that `manylabel --help` does not wait for torch."""
    if name in _EARLIER:
        warnings.warn(f"manylabel.{name} is manylabel.{_EARLIER[name]} now", FutureWarning, stacklevel=2)
        name = _EARLIER[name]
    if name not in _HOME:
        raise AttributeError(f"module 'manylabel' has no attribute {name!r}")
    with needs_train(f"manylabel.{name}"):
        return getattr(importlib.import_module(f"manylabel.{_HOME[name]}"), name)
