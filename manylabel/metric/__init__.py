"""Figures of merit as pure functions of arrays: scores [images, labels], and targets 1, 0 or -1 (unknown: skipped)."""

from manylabel.core.discovery import import_files
from manylabel.metric.average_precision import (
    average_precision,
    average_precisions,
    mean_average_precision,
    mean_defined,
    precision_recall_curve,
)
from manylabel.metric.calibration import Calibration, calibration, label_calibration_error
from manylabel.metric.f1 import F1, PerLabel, f1_at_k, f1_of_decisions, f1_scores, per_label, per_label_of_decisions
from manylabel.metric.judged import Judged, JudgedObjects
from manylabel.metric.registry import CLASSIFICATION, DETECTION, METRICS, Metric, Table, describe, measure_as, measured
from manylabel.metric.threshold import cross_fitted_decisions, fit_thresholds
from manylabel.metric.top_k import top_k_accuracy

import_files(__name__, __path__)

__all__ = [
    "CLASSIFICATION",
    "DETECTION",
    "F1",
    "METRICS",
    "Calibration",
    "Judged",
    "JudgedObjects",
    "Metric",
    "PerLabel",
    "Table",
    "average_precision",
    "average_precisions",
    "calibration",
    "cross_fitted_decisions",
    "describe",
    "f1_at_k",
    "f1_of_decisions",
    "f1_scores",
    "fit_thresholds",
    "label_calibration_error",
    "mean_average_precision",
    "mean_defined",
    "measure_as",
    "measured",
    "per_label",
    "per_label_of_decisions",
    "precision_recall_curve",
    "top_k_accuracy",
]
