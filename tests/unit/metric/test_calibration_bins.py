"""Fifteen bins are what a calibration error is given in where nothing is said."""

from __future__ import annotations

import numpy as np

from manylabel.metric import calibration, label_calibration_error


def test_there_are_fifteen_bins() -> None:
    random = np.random.default_rng(0)
    scores = random.random((500, 2))
    targets = (random.random(scores.shape) < scores**2).astype(np.int8)
    assert calibration(scores, targets).count.size == 15
    assert calibration(scores, targets).error == calibration(scores, targets, bins=15).error
    assert np.array_equal(label_calibration_error(scores, targets), label_calibration_error(scores, targets, bins=15))
    assert not np.array_equal(
        label_calibration_error(scores, targets), label_calibration_error(scores, targets, bins=16)
    )
