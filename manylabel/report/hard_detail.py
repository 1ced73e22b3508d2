"""What the `hard` part of a details file may hold: labels and object sizes with their hard shares, and images."""

from __future__ import annotations

from typing import Any

from manylabel.report.value import items, mapping, need, number, picture, text, wrong

STATES = ("hard", "missed", "found", "easy")
COUNTS = ("pairs", "hard_pairs", "images", "images_with_several", "hard_images")


def clean_hard(value: Any, where: str) -> dict[str, Any] | None:
    if not value:
        return None
    given = mapping(value, where)
    sizes = given.get("sizes")
    return {
        "definition": text(need(given, "definition", where), f"{where}.definition"),
        **{key: number(need(given, key, where), f"{where}.{key}") for key in COUNTS},
        "labels": _rows(need(given, "labels", where), f"{where}.labels", "support"),
        "sizes": None if sizes is None else _rows(sizes, f"{where}.sizes", "pairs", "area"),
        "examples": [
            _example(example, f"{where}.examples[{i}]")
            for i, example in enumerate(items(given.get("examples") or [], f"{where}.examples"))
        ],
    }


def _rows(value: Any, where: str, whole: str, *words: str) -> list[dict[str, Any]]:
    """Rows of which `hard` of `whole` instances are hard."""
    rows = []
    for i, row in enumerate(items(value, where)):
        given, place = mapping(row, f"{where}[{i}]"), f"{where}[{i}]"
        rows.append(
            {
                **{key: text(need(given, key, place), f"{place}.{key}") for key in ("name", *words)},
                **{key: number(need(given, key, place), f"{place}.{key}") for key in (whole, "hard")},
                "share": number(need(given, "share", place), f"{place}.share", high=1.0),
            }
        )
    return rows


def _example(value: Any, where: str) -> dict[str, Any]:
    given = mapping(value, where)
    return {
        "file": text(need(given, "file", where), f"{where}.file"),
        "thumbnail": picture(given.get("thumbnail")),
        "labels": [
            _label(label, f"{where}.labels") for label in items(need(given, "labels", where), f"{where}.labels")
        ],
    }


def _label(value: Any, where: str) -> dict[str, Any]:
    given = mapping(value, where)
    state = need(given, "state", where)
    if state not in STATES:
        raise wrong(f"{where}.state", f"is {state!r:.40}; it must be one of {', '.join(STATES)}")
    return {
        "label": text(need(given, "label", where), f"{where}.label"),
        "score": number(need(given, "score", where), f"{where}.score", high=1.0) or 0.0,
        "cost": number(given.get("cost"), f"{where}.cost", high=1.0),
        "state": state,
    }
