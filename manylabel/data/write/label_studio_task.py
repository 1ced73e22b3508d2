"""A task of Label Studio as we write it: an image, and a prediction of what is in it."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from manylabel.data.write.held import OtherStates


class Place(TypedDict, total=False):
    split: str
    group: str


class TaskData(OtherStates, Place):
    image: str  # address


class Chosen(TypedDict):
    choices: list[str]


class ChoicesResult(TypedDict):
    id: str
    type: str
    from_name: str
    to_name: str
    value: Chosen


class Rectangle(TypedDict):
    """In per cent of the image."""

    x: float
    y: float
    width: float
    height: float
    rotation: int
    rectanglelabels: list[str]


class RectangleResult(TypedDict):
    id: str
    type: str
    from_name: str
    to_name: str
    original_width: int
    original_height: int
    image_rotation: int
    value: Rectangle


Result = ChoicesResult | RectangleResult


class TaskPrediction(TypedDict):
    model_version: str
    result: list[Result]
    score: NotRequired[float]


class Task(TypedDict):
    data: TaskData
    predictions: list[TaskPrediction]
