"""What results.json of a run with several tasks holds."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from manylabel.core.described import Described

SCHEMA = 2  # of such a results.json


class NeverTrained(TypedDict):
    """A label of the judged images that no training image had."""

    name: str
    ap: float | None
    support: NotRequired[int]


class TaskResults(Described):
    """Of one of the tasks; its metrics are by name, as its figures are."""

    kind: str
    data: str
    split: str
    images: int
    judged: NotRequired[str]  # which images, as a digest; earlier versions do not tell
    bad_images: NotRequired[int | None]
    labels: int
    notes: list[str]
    warnings: NotRequired[list[str]]
    never_trained: NotRequired[list[NeverTrained]]
    goal: str
    loss_note: NotRequired[str]
    value: NotRequired[float | None]  # of the goal
    figures: dict[str, float | None]
    head: NotRequired[str]
    experts: int  # of a token
    active_parameters: float
    backbone_parameters: NotRequired[float]  # of these those of the backbone; earlier versions do not tell
    gmacs: float
    head_gmacs: float
    image_size: NotRequired[int]
    trained_images: NotRequired[int | None]  # of the judged ones
    trained_near: NotRequired[int | None]


class SharedModel(TypedDict):
    parameters: int
    experts: int
    sparse_layers: list[int]
    backbone: NotRequired[str]  # earlier versions had one kind only
    freeze: NotRequired[str]
    layers: NotRequired[int]  # of a vision transformer of ours
    width: NotRequired[int]
    patch: NotRequired[int]
    sharing: NotRequired[str]
    router: NotRequired[str]
    adaptive: NotRequired[bool]


class Routing(TypedDict):
    """Which experts the tokens of a task choose."""

    layers: list[list[float]]  # [sparse layer][expert] shares
    numbers: list[int]  # of these layers
    by_label: NotRequired[list[list[float]]]  # [label][expert], less the mean of all images
    labels: NotRequired[list[str]]
    circle: list[float]  # how many tokens lie where on a circle
    concentration: NotRequired[float]  # of their hidden states: 1 = all point one way
    entropy: NotRequired[list[float]]  # by layer


class Settling(TypedDict, total=False):
    """How far tokens still change their experts; nothing where nobody watched."""

    steps: list[int]
    distances: dict[str, list[list[float]]]  # TASK/LAYER → [step][step]


class SeveralResults(TypedDict):
    schema: int
    made_by: NotRequired[str]
    kind: NotRequired[str]
    title: str
    created: str
    model: SharedModel
    tasks: dict[str, TaskResults]
    routing: NotRequired[dict[str, Routing] | None]
    settling: NotRequired[Settling | None]
