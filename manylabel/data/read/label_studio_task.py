"""A task of Label Studio as strangers give it: any field may be missing, and hold anything until it is looked at."""

from __future__ import annotations

from typing import Any, TypedDict


class GivenResult(TypedDict, total=False):
    """One choice, region or the like of an annotation."""

    type: object
    value: object
    original_width: object
    original_height: object


class GivenValue(TypedDict, total=False):
    """What a result says; the labels of a region stand under its type."""

    choices: object
    x: object  # in per cent of the image
    y: object
    width: object
    height: object
    rotation: object
    points: object


class GivenTask(TypedDict, total=False):
    id: object
    data: dict[str, Any]  # whatever fields the project has, the image among them
    annotations: object
    predictions: object
    completions: object  # the annotations of old versions
