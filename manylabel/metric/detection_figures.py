"""What detections are judged by: average precision of boxes and of masks, by overlap and by the size of the object."""

from __future__ import annotations

from collections.abc import Callable

from manylabel.metric.detection import Kind
from manylabel.metric.judged import JudgedObjects
from manylabel.metric.registry import DETECTION, METRICS, Metric

DEFINITION = (
    "AP by the COCO protocol: mean over overlaps of 0.50 to 0.95 and over labels; AP50 and AP75 at one overlap; small, "
    "medium and large are objects below 32², below 96² and above, in pixels of the stored image"
)
FIGURES = {"": "ap", "50": "ap50", "75": "ap75", " small": "small", " medium": "medium", " large": "large"}


def _figure(kind: Kind, name: str) -> Callable[[JudgedObjects], float | None]:
    def measure(judged: JudgedObjects) -> float | None:
        found = judged.boxes if kind == "box" else judged.masks
        if found is None:
            return None
        value: float | None = getattr(found, name)
        return float("nan") if value is None else value

    return measure


for first, kind, of in (("AP", "box", 0), ("mask AP", "mask", 10)):
    for number, (more, field_name) in enumerate(FIGURES.items()):
        METRICS.add(
            Metric(
                f"{first}{more}",
                f"{first}{more}",
                DEFINITION,
                _figure(kind, field_name),  # type: ignore[arg-type]
                (DETECTION,),
                headline=not more,
                goals=() if more else (DETECTION,),
                order=of + number,
            )
        )
