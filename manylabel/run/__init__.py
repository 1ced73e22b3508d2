"""From data to a judged, reusable classifier, and back to it later."""

from manylabel.run.judging import evaluate
from manylabel.run.settings import resolve
from manylabel.run.training_run import RunResult, train

__all__ = ["RunResult", "evaluate", "resolve", "train"]
