"""Which explanation is worth showing: pointing game and energy in boxes of every method at every stage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from rich.table import Table as Printed
from torch import Tensor

from manylabel import console
from manylabel.data.objects import Objects
from manylabel.data.scenes import draw_scene
from manylabel.data.source import SceneSource
from manylabel.data.table import Table
from manylabel.error import DataError, DecodeError
from manylabel.explain.attention import attention_grids
from manylabel.explain.cam import eigen_cam, grad_cam, grad_cam_pp
from manylabel.explain.explanation import Explanation
from manylabel.explain.frame import Frame
from manylabel.explain.gradient import Backwards, final_map
from manylabel.explain.method import ATTENTION, choose
from manylabel.explain.pointing import box_area, energy_inside, points_inside
from manylabel.features import FINAL, Features
from manylabel.inference.labels import LabelPredictor
from manylabel.runtime.rich_console import Terminal

SIDE = 224  # pixels of the longer side at which maps and boxes are compared
BATCH = 16
AREA, CENTRE = "chance: area of the boxes", "always the centre"


@dataclass(frozen=True)
class Row:
    """One way to explain, over all pairs of an image and a label in it; shares in percent."""

    method: str
    stage: str
    pointing: float  # the highest place lies in a box of the label
    energy: float  # share of the map inside the boxes
    empty: float  # maps that are 0 everywhere: nothing speaks for the label
    pairs: int
    images: int


@dataclass(frozen=True)
class Case:
    """An image with boxes."""

    pixels: Tensor  # uint8 [3, S, S]
    size: tuple[int, int]  # width and height
    boxes: dict[int, np.ndarray]  # label → [m, 4] in shares of the image's sides


def measure(predictor: LabelPredictor, table: Table, most: int, stages: Sequence[str] | None = None) -> list[Row]:
    """Every method at each of `stages` (None: all), over at most so many images of a table with the model's labels."""
    asked = list(predictor.model.backbone.channels) if stages is None else list(stages)
    asked = [choose(predictor.model, "grad_cam", stage)[1][0] for stage in asked]
    table = with_boxes(table, most)
    figures: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    images = 0
    waiting: list[Case] = []
    with console.counting("explaining", len(table)) as advance:
        for case in _cases(predictor, table):
            waiting.append(case)
            images += 1
            if len(waiting) == BATCH:
                _judge(predictor, waiting, asked, figures)
                advance(len(waiting))
                waiting = []
        if waiting:
            _judge(predictor, waiting, asked, figures)
    if not images:
        raise DataError(
            f"none of the {len(table)} images of {table.name} could be read, or their boxes do not fit them"
        )
    rows = []
    for (method, stage), found in figures.items():
        pointing, energy, empty = (round(100 * float(mean), 2) for mean in np.mean(found, axis=0))
        rows.append(Row(method, stage, pointing, energy, empty, len(found), images))
    return rows


def with_boxes(table: Table, most: int) -> Table:
    """At most so many of the images that have boxes, evenly over the table."""
    if isinstance(table.source, SceneSource):
        table = _scenes(table.subset(_evenly(np.arange(len(table)), most)), table.source)
    if table.objects is None or not len(table.objects):
        raise DataError(
            f"{table.name} has no boxes of the model's labels; use data with boxes, e.g. PASCAL VOC or COCO"
        )
    return table.subset(_evenly(np.unique(table.objects.row), most))


def _evenly(rows: np.ndarray, most: int) -> np.ndarray:
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int))]


def _scenes(table: Table, source: SceneSource) -> Table:
    """The embedded scenes with the boxes that drawing them gives."""
    found = []
    for row, key in enumerate(table.keys):
        for thing in draw_scene(source.seed, int(key.rpartition("-")[2]), source.size).objects:
            if thing.label in table.labels:
                found.append((row, table.labels.index(thing.label), thing.box))
    no = np.zeros(len(found), bool)
    rows, labels = np.array([f[0] for f in found], np.int64), np.array([f[1] for f in found], np.int32)
    boxes = np.array([f[2] for f in found], np.float32).reshape(-1, 4)
    return replace(table, objects=Objects(rows, labels, boxes, no, no, (None,) * len(found)))


def _cases(predictor: LabelPredictor, table: Table) -> Iterator[Case]:
    objects = table.objects
    assert objects is not None
    for row, key in enumerate(table.keys):
        try:
            size = table.source.describe(key)
            picture = table.source.read(key, at_least=predictor.at_least)
        except DecodeError:
            continue
        told = tuple(map(int, table.sizes[row])) if table.sizes is not None else (0, 0)
        if all(told) and told != size:  # the boxes belong to another frame than the photo's
            continue
        boxes: dict[int, np.ndarray] = {}
        for label in np.unique(objects.label[objects.of(row)]):
            own = [i for i in objects.of(row) if objects.label[i] == label]
            if not objects.difficult[own].all():
                boxes[int(label)] = objects.box[own] / np.array([*size, *size])
        if boxes:
            yield Case(predictor.prepared(picture), size, boxes)


def _judge(
    predictor: LabelPredictor,
    cases: Sequence[Case],
    stages: Sequence[str],
    figures: dict[tuple[str, str], list[tuple[float, float, float]]],
) -> None:
    """Adds (pointing, energy, empty) of every image and label, for each way to explain."""
    images = torch.stack([case.pixels for case in cases]).to(predictor.device)
    most = max(len(case.boxes) for case in cases)
    columns = torch.tensor([[*case.boxes, *[0] * (most - len(case.boxes))] for case in cases], device=images.device)
    ways = dict(_ways(predictor, images, columns, stages))
    for i, case in enumerate(cases):
        frame = Frame.of(predictor.bundle.preprocess, *case.size)
        width, height = (max(1, round(side * SIDE / max(case.size))) for side in case.size)
        centre = np.zeros((height, width), np.float32)
        centre[height // 2, width // 2] = 1
        for k, boxes in enumerate(case.boxes.values()):
            inside = box_area(boxes, width, height)
            area = float(inside.mean())
            figures[AREA, ""].append((area, area, 0.0))
            figures[CENTRE, ""].append((points_inside(centre, inside), area, 0.0))
            for way, grids in ways.items():
                heat = Explanation("", grids=grids(i, k), frame=frame).sized(width, height)
                found = (points_inside(heat, inside), energy_inside(heat, inside), float(heat.max() == 0))
                figures[way].append(found)


def _ways(
    predictor: LabelPredictor, images: Tensor, columns: Tensor, stages: Sequence[str]
) -> Iterator[tuple[tuple[str, str], Callable[[int, int], dict[str, np.ndarray]]]]:
    """(method, stage), and a function of image and label that gives the grids."""
    model = predictor.model
    with torch.no_grad():
        features: Features = model.backbone(images, task=model.name)
    if model.head.query_of_label is not None:
        looked = attention_grids(model, features, columns, model.head.stages)
        mean = {stage: grid.mean(dim=2).cpu().numpy() for stage, grid in looked.items()}
        together = {"+".join(mean): tuple(mean)} | {stage: (stage,) for stage in mean}
        for name, parts in together.items():
            yield (ATTENTION, name), lambda i, k, parts=parts: {stage: mean[stage][i, k] for stage in parts}  # type: ignore[misc]
    for stage in stages:
        if stage == FINAL:
            found = final_map(model, features)
        else:
            found = Backwards(model, predictor.contiguous, stage)(images)
        plain, plus = [], []
        for column in columns.unbind(1):
            gradient = found.gradient(column)
            plain.append(grad_cam(found.a, gradient))
            plus.append(grad_cam_pp(found.a, gradient))
        eigen = [eigen_cam(found.a)] * columns.shape[1]
        for method, maps in (("grad_cam", plain), ("grad_cam_pp", plus), ("eigen_cam", eigen)):
            grids = torch.stack(maps, dim=1).cpu().numpy()
            yield (method, stage), lambda i, k, grids=grids, stage=stage: {stage: grids[i, k]}  # type: ignore[misc]


def print_rows(rows: Sequence[Row]) -> None:
    table = Printed(title=f"{rows[0].pairs} labels with boxes in {rows[0].images} images, percent")
    table.add_column("method")
    table.add_column("stage")
    for heading in ("pointing game", "energy in boxes", "empty maps"):
        table.add_column(heading, justify="right")
    for row in sorted(rows, key=lambda row: -row.pointing):
        figures = (f"{value:.1f}" for value in (row.pointing, row.energy, row.empty))
        table.add_row(row.method, row.stage, *figures)
    Terminal().print(table)
