"""Where two runs look for a label that the first misses and the second finds (Fig. 2 of RM's paper)."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from itertools import groupby

from PIL import Image

from manylabel.compare import Run
from manylabel.core.hard_findings import FoundInstance, HardFindings
from manylabel.error import ManylabelError
from manylabel.explain import Explainer, Explanation
from manylabel.explain.every_stage import EveryStage
from manylabel.explain.overlay import captioned
from manylabel.hard_runs.run_data import RunData
from manylabel.inference.predictor import Predictor

CELL = 144  # pixels
PICTURED = 12  # instances


def draw_maps(found: HardFindings, data: RunData | None, first: Run, second: Run | None) -> dict[str, str]:
    """`file label` → a picture as a data address: the first run's map, then the second's at every stage."""
    if data is None or second is None or found["second"] is None:
        return {}
    try:
        explainers = (
            Explainer(_predictor(first), "grad_cam", None, first.task),
            EveryStage(_predictor(second), "grad_cam", second.task),
        )
        return dict(_pictures(found["second"]["found"][:PICTURED], data, explainers))
    except (ManylabelError, OSError) as error:
        found["notes"].append(f"maps are left out: {error}")
        return {}


def _predictor(run: Run) -> Predictor:
    return Predictor.load(run.folder if run.task is None else run.folder.parents[1])


def _pictures(
    rows: list[FoundInstance], data: RunData, explainers: tuple[Explainer, EveryStage]
) -> Iterator[tuple[str, str]]:
    for file, group in groupby(sorted(rows, key=lambda row: row["file"]), lambda row: row["file"]):
        photo = data.judged.source.read(file, at_least=CELL)
        labels = [row["label"] for row in group]
        maps = [next(each.stream([photo], labels)) for each in explainers]
        stages = len(maps[1]) // len(labels)
        for i, label in enumerate(labels):
            yield f"{file} {label}", _strip([maps[0][i], *maps[1][i * stages : (i + 1) * stages]])


def _strip(maps: list[Explanation]) -> str:
    cells = [captioned(one, CELL) for one in maps]
    strip = Image.new("RGB", (sum(cell.width for cell in cells), max(cell.height for cell in cells)), "white")
    x = 0
    for cell in cells:
        strip.paste(cell, (x, 0))
        x += cell.width
    buffer = io.BytesIO()
    strip.save(buffer, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
