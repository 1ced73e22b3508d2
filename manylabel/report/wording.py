"""How the report says things: numbers, dates, and what each measure means when the results do not say it themselves."""

from __future__ import annotations

from datetime import datetime

from manylabel.compact import NBSP

# Titles and definitions of the measures; a results file's own `definitions` win over these.
TITLES = {
    "mAP": "mAP",
    "mAP_interpolated": "mAP, interpolated",
    "top1": "Top 1",
    "top5": "Top 5",
    "CF1": "CF1",
    "OF1": "OF1",
    "CP": "CP",
    "CR": "CR",
    "OP": "OP",
    "OR": "OR",
    "top3": "Top 3",
    "at_thresholds": "At each label's threshold",
    "f1_at": "F1 at k",
    "calibration_error": "Calibration error",
    "label_calibration_error": "Calibration error per label",
    "labels_scored": "Labels scored",
    "images": "Images",
}
DEFINITIONS = {
    "mAP": "mean over the labels of their average precision",
    "mAP_interpolated": "the same with precision made monotone first (VOC, all points); never smaller",
    "top1": "share of images whose label has the highest score",
    "top5": "share of images whose label is among the five highest scores",
    "CP": "precision of each label, averaged over the labels",
    "CR": "recall of each label, averaged over the labels",
    "CF1": "harmonic mean of CP and CR, so every label weighs the same",
    "OP": "precision over all decisions together",
    "OR": "recall over all decisions together",
    "OF1": "harmonic mean of OP and OR, so frequent labels weigh more",
    "top3": "at most the three highest scores of an image count",
    "at_thresholds": "a label counts as predicted from its own threshold upwards",
    "f1_at": "exactly the k highest scores of each image count as predicted",
    "calibration_error": "mean distance between a score and how often it comes true",
    "label_calibration_error": "the same within each label, averaged over the labels",
    "labels_scored": "labels that some image has and some image has not; the others have no average precision",
    "images": "images that were scored",
}

FREEZE = {"frozen": "backbone frozen", "partial": "last groups trained", "full": "all weights trained"}


def percent(value: float | None) -> str:
    """61.23 → '61.2 %'; None → an en dash."""
    return "–" if value is None else f"{value:.1f}{NBSP}%"


def share(score: float) -> str:
    """A score 0..1 in few digits that never claims a certainty that is not there: 0.9996 is not '100 %'."""
    value = 100 * score
    if 1 <= value <= 99:
        return f"{value:.0f}{NBSP}%"
    if 0 < value < 0.1:
        return f"<{NBSP}0.1{NBSP}%"
    if 99.9 < value < 100:
        return f">{NBSP}99.9{NBSP}%"
    return f"{value:.0f}{NBSP}%" if value in (0, 100) else f"{value:.1f}{NBSP}%"


def count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def date(text: str) -> str:
    """An ISO time as one reads it; anything else stays as it is."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = moment.tzname()
    return f"{moment.day} {moment:%B %Y, %H:%M}{' ' + zone if zone else ''}"
