"""What the `hard` part of a details file may hold: labels and object sizes with their hard shares, and images."""

from __future__ import annotations

from typing import Any, TypedDict

from manylabel.report.value import items, mapping, need, need_number, need_text, number, picture, wrong

STATES = ("hard", "missed", "found", "easy")


class CheckedShare(TypedDict):
    """Of a label's or a size's instances."""

    name: str
    hard: float | None
    share: float | None


class CheckedHardLabel(CheckedShare):
    support: float | None


class CheckedSize(CheckedShare):
    area: str
    pairs: float | None


class CheckedInstance(TypedDict):
    label: str
    score: float
    cost: float | None
    state: str


class CheckedExample(TypedDict):
    file: str
    thumbnail: str | None
    labels: list[CheckedInstance]


class CheckedHard(TypedDict):
    definition: str
    pairs: float | None
    hard_pairs: float | None
    images: float | None
    images_with_several: float | None
    hard_images: float | None
    labels: list[CheckedHardLabel]
    sizes: list[CheckedSize] | None
    examples: list[CheckedExample]


def clean_hard(value: Any, where: str) -> CheckedHard | None:
    if not value:
        return None
    given = mapping(value, where)
    sizes = given.get("sizes")
    return {
        "definition": need_text(given, "definition", where),
        "pairs": need_number(given, "pairs", where),
        "hard_pairs": need_number(given, "hard_pairs", where),
        "images": need_number(given, "images", where),
        "images_with_several": need_number(given, "images_with_several", where),
        "hard_images": need_number(given, "hard_images", where),
        "labels": [
            _hard_label(row, f"{where}.labels[{i}]")
            for i, row in enumerate(items(need(given, "labels", where), f"{where}.labels"))
        ],
        "sizes": None
        if sizes is None
        else [_size(row, f"{where}.sizes[{i}]") for i, row in enumerate(items(sizes, f"{where}.sizes"))],
        "examples": [
            _example(example, f"{where}.examples[{i}]")
            for i, example in enumerate(items(given.get("examples") or [], f"{where}.examples"))
        ],
    }


def _hard_label(value: Any, where: str) -> CheckedHardLabel:
    given = mapping(value, where)
    return {
        "name": need_text(given, "name", where),
        "support": need_number(given, "support", where),
        "hard": need_number(given, "hard", where),
        "share": need_number(given, "share", where, high=1.0),
    }


def _size(value: Any, where: str) -> CheckedSize:
    given = mapping(value, where)
    return {
        "name": need_text(given, "name", where),
        "area": need_text(given, "area", where),
        "pairs": need_number(given, "pairs", where),
        "hard": need_number(given, "hard", where),
        "share": need_number(given, "share", where, high=1.0),
    }


def _example(value: Any, where: str) -> CheckedExample:
    given = mapping(value, where)
    return {
        "file": need_text(given, "file", where),
        "thumbnail": picture(given.get("thumbnail")),
        "labels": [
            _label(label, f"{where}.labels") for label in items(need(given, "labels", where), f"{where}.labels")
        ],
    }


def _label(value: Any, where: str) -> CheckedInstance:
    given = mapping(value, where)
    state = need(given, "state", where)
    if state not in STATES:
        raise wrong(f"{where}.state", f"is {state!r:.40}; it must be one of {', '.join(STATES)}")
    return {
        "label": need_text(given, "label", where),
        "score": number(need(given, "score", where), f"{where}.score", high=1.0) or 0.0,
        "cost": number(given.get("cost"), f"{where}.cost", high=1.0),
        "state": state,
    }
