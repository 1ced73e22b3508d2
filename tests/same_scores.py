"""Does a bundle say of the judged images what its run said?

Scores are compared, not mAP: two images of nearly the same score may change places.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import manylabel as ml
from manylabel.run.training_run import RunResult
from manylabel.score_file import read_scores


def check_bundle_scores_as_its_run(run: RunResult, photos: Path, tolerance: float = 2e-3) -> None:
    told = read_scores(run.folder)
    assert told is not None
    predictor = ml.Predictor.load(run.folder)
    predictions = predictor.predict([photos / "images" / Path(key).name for key in told.keys])
    again = [[next(e.score for e in p.labels if e.label == label) for label in predictor.labels] for p in predictions]
    np.testing.assert_allclose(np.array(again), told.scores, atol=tolerance)
