"""What a details file may hold, from curves to mistakes, hits and hard instances; scores are 0..1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypedDict

from manylabel.core.expert_weights import ExpertWeights
from manylabel.report.curve import Points
from manylabel.report.expert_detail import clean_experts
from manylabel.report.hard_detail import CheckedHard, clean_hard
from manylabel.report.value import items, mapping, need, need_text, number, picture, shares, text, wrong

MOST_COOCCURRENCE = 40  # more names are not readable in one picture


class CheckedBins(TypedDict):
    edges: list[float | None]
    score: list[float | None]
    observed: list[float | None]
    count: list[float | None]


class CheckedCooccurrence(TypedDict):
    names: list[str]
    counts: list[list[float]]


class CheckedEpoch(TypedDict):
    epoch: float | None
    mAP: float | None
    rate: float | None
    seconds: float | None
    loss: float | None


class CheckedGuess(TypedDict):
    label: str
    score: float
    present: bool | None


class CheckedImage(TypedDict):
    """One that the model got wrong, or right."""

    file: str
    thumbnail: str | None
    overlay: str | None
    kind: str
    label: str
    score: float
    present: list[str]
    top: list[CheckedGuess]


class CheckedDetails(TypedDict):
    curves: list[Points | None]  # of each label: (recall, precision)
    calibration: CheckedBins | None
    cooccurrence: CheckedCooccurrence | None
    experts: ExpertWeights | None
    hard: CheckedHard | None
    history: list[CheckedEpoch]
    mistakes: list[CheckedImage]
    hits: list[CheckedImage]
    explained: str | None


def clean_details(details: Any, labels: int) -> CheckedDetails:
    """The details with every section present; a section that was not given is empty or None."""
    where = "details"
    given = mapping(details, where)
    return {
        "curves": _curves(given.get("curves") or [], f"{where}.curves", labels),
        "calibration": _calibration(given.get("calibration"), f"{where}.calibration"),
        "cooccurrence": _cooccurrence(given.get("cooccurrence"), f"{where}.cooccurrence"),
        "experts": clean_experts(given.get("experts"), f"{where}.experts"),
        "hard": clean_hard(given.get("hard"), f"{where}.hard"),
        "history": _history(given.get("history") or [], f"{where}.history"),
        "mistakes": _shown(given.get("mistakes") or [], f"{where}.mistakes", ("missed", "false alarm")),
        "hits": _shown(given.get("hits") or [], f"{where}.hits", ("hit",)),
        "explained": text(given["explained"], f"{where}.explained") if given.get("explained") else None,
    }


def _curves(value: Any, where: str, labels: int) -> list[Points | None]:
    """Per label its points (recall, precision), or None."""
    rows = items(value, where)
    if rows and len(rows) != labels:
        raise wrong(where, f"has {len(rows)} entries for {labels} labels")
    curves: list[Points | None] = []
    for i, row in enumerate(rows):
        if row is None:
            curves.append(None)
            continue
        given, place = mapping(row, f"{where}[{i}]"), f"{where}[{i}]"
        precision = shares(need(given, "precision", place), f"{place}.precision")
        recall = shares(need(given, "recall", place), f"{place}.recall")
        if len(precision) != len(recall):
            raise wrong(place, f"has {len(precision)} precisions but {len(recall)} recalls")
        points = [(r, p) for r, p in zip(recall, precision, strict=True) if r is not None and p is not None]
        curves.append(points or None)
    return curves


def _calibration(value: Any, where: str) -> CheckedBins | None:
    if not value:
        return None
    given = mapping(value, where)
    clean: CheckedBins = {
        "edges": shares(need(given, "edges", where), f"{where}.edges"),
        "score": shares(need(given, "score", where), f"{where}.score"),
        "observed": shares(need(given, "observed", where), f"{where}.observed"),
        "count": [number(n, f"{where}.count") for n in items(need(given, "count", where), f"{where}.count")],
    }
    bins = len(clean["count"])
    if [len(clean["edges"]), len(clean["score"]), len(clean["observed"])] != [bins + 1, bins, bins]:
        raise wrong(where, f"needs {bins + 1} edges, {bins} scores and {bins} observed shares for its {bins} counts")
    if None in clean["edges"]:
        raise wrong(f"{where}.edges", "holds an undefined edge")
    return clean if any(clean["count"]) else None


def _cooccurrence(value: Any, where: str) -> CheckedCooccurrence | None:
    if not value:
        return None
    given = mapping(value, where)
    names = [text(name, f"{where}.names") for name in items(need(given, "names", where), f"{where}.names")]
    rows = items(need(given, "counts", where), f"{where}.counts")
    counts = [[number(n, f"{where}.counts") or 0.0 for n in items(row, f"{where}.counts")] for row in rows]
    if len(counts) != len(names) or any(len(row) != len(names) for row in counts):
        raise wrong(f"{where}.counts", f"must be {len(names)} rows of {len(names)} numbers, one for each name")
    most = sorted(range(len(names)), key=lambda i: -counts[i][i])[:MOST_COOCCURRENCE]
    kept = sorted(most)  # the given order stays
    cut = [[counts[row][column] for column in kept] for row in kept]
    return {"names": [names[i] for i in kept], "counts": cut} if kept else None


def _history(value: Any, where: str) -> list[CheckedEpoch]:
    history: list[CheckedEpoch] = []
    for i, row in enumerate(items(value, where)):
        given, place = mapping(row, f"{where}[{i}]"), f"{where}[{i}]"
        need(given, "epoch", place)
        epoch, found, rate, seconds = (
            number(given.get(key), f"{place}.{key}") for key in ("epoch", "mAP", "rate", "seconds")
        )
        loss = number(given.get("loss"), f"{place}.loss", low=-math.inf)
        history.append({"epoch": epoch, "mAP": found, "rate": rate, "seconds": seconds, "loss": loss})
    return [point for point in history if point["epoch"] is not None]


def _shown(value: Any, where: str, kinds: Sequence[str]) -> list[CheckedImage]:
    return [_image(image, f"{where}[{i}]", kinds) for i, image in enumerate(items(value, where))]


def _image(value: Any, where: str, kinds: Sequence[str]) -> CheckedImage:
    given = mapping(value, where)
    kind = need(given, "kind", where)
    if kind not in kinds:
        raise wrong(f"{where}.kind", f"is {kind!r:.40}; it must be {' or '.join(map(repr, kinds))}")
    score = number(need(given, "score", where), f"{where}.score", high=1.0)
    if score is None:
        raise wrong(f"{where}.score", "is undefined")
    return {
        "file": need_text(given, "file", where),
        "thumbnail": picture(given.get("thumbnail")),
        "overlay": picture(given.get("overlay")),
        "kind": kind,
        "label": need_text(given, "label", where),
        "score": score,
        "present": [text(name, f"{where}.present") for name in items(given.get("present") or [], f"{where}.present")],
        "top": [_guess(guess, f"{where}.top") for guess in items(given.get("top") or [], f"{where}.top")],
    }


def _guess(value: Any, where: str) -> CheckedGuess:
    given = mapping(value, where)
    return {
        "label": need_text(given, "label", where),
        "score": number(need(given, "score", where), f"{where}.score", high=1.0) or 0.0,
        "present": given.get("present") if isinstance(given.get("present"), bool) else None,
    }
