"""What every kind of task must hold; and that nobody else asks which kind it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import manylabel
from manylabel.config import KIND_DEFAULTS, DataConfig, make_config
from manylabel.core.output import Output
from manylabel.data.dataset import Batch
from manylabel.data.objects import Objects
from manylabel.data.read import read_table
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.labels import ABSENT, PRESENT, UNKNOWN
from manylabel.metric import METRICS
from manylabel.metric.registry import KINDS as KINDS_OF_METRICS
from manylabel.task import KINDS, task_of

PACKAGE = Path(manylabel.__file__).parent
CLASSES = {"MultiLabel", "SingleLabel", "Detection"}
NAMES = {"MULTI_LABEL", "SINGLE_LABEL", "DETECTION"}


def task(kind: str) -> Any:
    return task_of(make_config(None, [f"kind={kind}"]).only)


def table() -> Table:
    """Of the second image nobody said anything; the others have one label each, and a box of it."""
    found = read_table(DataConfig(path="scenes")).subset(np.arange(4))
    matrix = np.full_like(found.matrix, ABSENT)
    matrix[[0, 2, 3], [1, 2, 3]] = PRESENT
    matrix[1] = UNKNOWN
    none = np.zeros(3, bool)
    boxes = np.tile(np.array([1, 1, 9, 9], np.float32), (3, 1))
    objects = Objects(np.array([0, 2, 3]), np.array([1, 2, 3]), boxes, none, none, (None,) * 3)
    return replace(found, source=FileSource(Path()), matrix=matrix, objects=objects)


def test_every_kind_with_metrics_is_a_task_and_named_once() -> None:
    assert set(KINDS) == set(KINDS_OF_METRICS)
    assert all(KINDS[kind].kind == kind == task(kind).kind for kind in KINDS)
    assert set(KIND_DEFAULTS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_it_has_no_parameters_and_no_files(kind: str) -> None:
    one = task(kind)
    assert not isinstance(one, nn.Module)
    held = [getattr(one, field.name) for field in fields(one)]
    assert all(isinstance(value, (str, bool, type(None))) for value in held)
    data = table()
    learned = one.learning(make_config(None, [f"kind={kind}"]).only, data, np.arange(4), print)
    lesson = getattr(learned, "lesson", None)
    modules = [] if lesson is None else [part for part in vars(lesson).values() if isinstance(part, nn.Module)]
    assert not [parameter for module in modules for parameter in module.parameters()]
    assert one == task(kind)  # nothing was written into it


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_chosen_by_a_figure_it_has(kind: str) -> None:
    one = task(kind)
    assert one.goal in one.figures
    assert METRICS.goal(kind).name == one.goal
    assert one.threshold_count(7) in (1, 7)


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_of_which_nobody_said_anything_is_no_negative(kind: str) -> None:
    one, data = task(kind), table()
    usable = one.usable(one.fit(data))
    if data.keys[1] not in usable.keys:  # no background either
        assert usable.keys.tolist() == data.keys[[0, 2, 3]].tolist()
        return
    learned = one.learning(make_config(None, [f"kind={kind}"]).only, usable, np.arange(4), print)
    torch.manual_seed(0)
    values = []
    for logits in (torch.zeros(4, data.matrix.shape[1]), torch.zeros(4, data.matrix.shape[1])):
        logits[1] = 5 * torch.randn(data.matrix.shape[1])  # what is said of it changes nothing
        targets = learned.targets(Batch(torch.zeros(4, 3, 8, 8), torch.arange(4)), torch.device("cpu"))
        values.append(sum(learned.losses(Output(logits), targets).values()).item())
    assert values[0] == values[1]
    judged = learned.judged(_scores(learned, data), usable)
    assert (judged.targets[1] == UNKNOWN).all()


def _scores(learned: Any, data: Table) -> Any:
    batch = Batch(torch.zeros(4, 3, 8, 8), torch.arange(4))
    return learned.evidence(Output(torch.zeros(4, data.matrix.shape[1])), batch)


# --- nobody else asks which kind it is ------------------------------------------------------------------------------


def asked(source: str) -> Iterator[str]:
    """Places where a kind of task is compared with a name or a class."""
    for node in ast.walk(ast.parse(source)):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            parts = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        elif isinstance(node, ast.Attribute) and node.attr == "single":
            yield f"line {node.lineno}: .single"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            if names & CLASSES and not _narrows(node, source):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        for part in parts:
            text = isinstance(part, ast.Constant) and part.value in tuple(KINDS)
            name = isinstance(part, ast.Name) and part.id in NAMES
            if text or name:
                yield f"line {getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def _narrows(call: ast.Call, source: str) -> bool:
    """`assert isinstance(…)` decides nothing: it is for the type checker."""
    return source.splitlines()[call.lineno - 1].lstrip().startswith("assert ")


def test_nobody_outside_asks_which_kind_it_is() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}, {place}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "task"
        for place in asked(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        'if task.kind == "detection": pass',
        'x = "single_label" != config.task',
        'if kind in ("multi_label", "single_label"): pass',
        "if kind is DETECTION: pass",
        "y = 1 if isinstance(task, Detection) else 2",
        "if task.single: pass",
        'match kind:\n    case "detection": pass',
    ],
)
def test_whoever_asks_is_found(source: str) -> None:
    assert list(asked(source))


@pytest.mark.parametrize(
    "source",
    [
        'kind: Literal["multi_label"] = "multi_label"',
        "assert isinstance(task, Detection)",
        "if task.finds_objects: pass",
    ],
)
def test_words_and_properties_are_no_question(source: str) -> None:
    assert not list(asked(source))
