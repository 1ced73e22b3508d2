"""Methods against the first of them: figures, labels that win and lose, pairs, resolutions; as plain values for JSON."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from manylabel import console
from manylabel.compare.bootstrap import drawn_ap, draws, interval
from manylabel.compare.runs import ALIKE, Method, Run, never_trained_notes, warnings_about
from manylabel.core.comparison import ComparedMethod, Comparison, Difference, LabelChange, Resolutions
from manylabel.core.described import Described
from manylabel.error import DataError
from manylabel.metric import CLASSIFICATION, METRICS
from manylabel.storage.output import MADE_BY
from manylabel.suggest import closest

SCHEMA = 1
FEW = 5  # positives below which a figure is mostly chance
USUAL = dict.fromkeys(metric.where for metric in METRICS.of(*CLASSIFICATION) if "." not in metric.where)  # or null


def compare_runs(methods: Sequence[Method], pairs: Sequence[tuple[str, str]] = (), resamples: int = 1000) -> Comparison:
    """Everything that the table, the figures and the page show; differences are to the first method."""
    check(methods, pairs)
    baseline = methods[0]
    drawn = _drawn(methods, resamples)
    labels = baseline.runs[0].labels
    column = {name: i for i, name in enumerate(labels)}
    return {
        "schema": SCHEMA,
        "made_by": MADE_BY,
        "warnings": warnings_about(methods),
        "data": baseline.runs[0].results["data"],
        "baseline": baseline.name,
        **descriptions(methods),
        "resamples": resamples if drawn else 0,
        "notes": _notes(methods, resamples, bool(drawn), len(labels)),
        "methods": [_method(method, descriptions(methods)["metrics"]) for method in methods],
        "labels": labels,
        "support": [label["support"] for label in baseline.runs[0].results["labels"]],
        "ap": {method.name: _list(method.ap) for method in methods},
        "differences": [_difference(baseline, method, drawn, labels) for method in methods[1:]],
        "pairs": [
            {
                "labels": [a, b],
                "ap": {m.name: _list(m.ap[[column[a], column[b]]]) for m in methods},
                "gap": {m.name: _number(abs(m.ap[column[a]] - m.ap[column[b]])) for m in methods},
            }
            for a, b in pairs
        ],
        "resolutions": resolutions(methods),
        "experts": [
            {"method": method.name, **weights}
            for method in methods
            if (weights := method.runs[0].details.get("experts"))
        ],
    }


def check(methods: Sequence[Method], pairs: Sequence[tuple[str, str]]) -> None:
    """Only what was judged on the same labels and images can be compared."""
    if len(methods) < 2:
        raise DataError(
            "there is only one method to compare (runs that differ in their seed only count as one); give another run"
        )
    runs = [run for method in methods for run in method.runs]
    first = runs[0]
    for run in runs[1:]:
        if run.labels != first.labels:
            only = sorted(set(first.labels) ^ set(run.labels))
            what = f"e.g. {only[0]!r} is in one of them only" if only else "they come in another order"
            raise DataError(f"{first.folder} and {run.folder} have different labels ({what}): they cannot be compared")
        mine, its = (tuple(r.results["data"].get(k) for k in ("images", "name", "split")) for r in (first, run))
        if mine != its:
            said = [f"{images} images of {name} ({split})" for images, name, split in (mine, its)]
            raise DataError(
                f"{first.folder} was judged on {said[0]}, {run.folder} on {said[1]}: "
                "judge them on the same images (manylabel evaluate … --data …)"
            )
    scored = [run for run in runs if run.scores is not None]
    for run in scored[1:]:
        _same_images(scored[0], run)
    for name in itertools.chain.from_iterable(pairs):
        if name not in first.labels:
            raise DataError(f"there is no label {name!r}{closest(name, first.labels)}")


def _same_images(first: Run, run: Run) -> None:
    assert first.scores is not None
    assert run.scores is not None
    if not np.array_equal(first.scores.keys, run.scores.keys):
        split = first.settings.get("data.split_file") or first.folder / "split.csv"
        raise DataError(
            f"{first.folder} and {run.folder} were judged on different images (without a split column, each seed "
            f"splits anew); train the second again with --set data.split_file={split}"
        )
    if not np.array_equal(first.scores.matrix, run.scores.matrix):
        raise DataError(f"the labels of the images changed between {first.folder} and {run.folder}; train again")


def _drawn(methods: Sequence[Method], resamples: int) -> dict[str, np.ndarray]:
    """AP of every label in every draw, in percent, mean over seeds; nothing where scores are missing."""
    runs = [run for method in methods for run in method.runs]
    if resamples == 0 or any(run.scores is None for run in runs):
        return {}
    first = runs[0].scores
    assert first is not None
    weights = draws(len(first.keys), resamples)
    found = {}
    with console.counting("drawing images anew", len(runs) * first.scores.shape[1]) as advance:
        for method in methods:
            parts = [drawn_ap(r.scores.scores, r.scores.matrix, weights, advance) for r in method.runs if r.scores]
            found[method.name] = np.where(np.isnan(method.ap), np.nan, 100 * np.mean(parts, axis=0))
    return found


def _notes(methods: Sequence[Method], resamples: int, drawn: bool, labels: int) -> list[str]:
    notes = never_trained_notes(methods)
    if drawn:
        notes.append(
            "intervals are the middle 95 % over images drawn anew, the same draws for all methods; they say how far other "
            "images of the same kind could change a difference, not how far another seed could"
        )
        notes.append(
            f"'surely' is said of a label whose interval leaves 0 out; of {labels} labels without any difference about "
            f"{labels / 20:.0f} would be called so by chance, and labels with fewer than {FEW} positives never are"
        )
    elif resamples:
        notes.append("no intervals: a run has no scores.npz (it is older, or very large); train it again")
    seeds = {len(method.runs) for method in methods}
    if seeds == {1}:
        notes.append("one seed each: differences of some tenths may be chance")
    return notes


def descriptions(methods: Sequence[Method]) -> Described:
    """What the runs say of their figures; each figure as the first run that has it says."""
    told: Described = {"metrics": {}, "tables": {}}
    for run in (run for method in methods for run in method.runs):
        for place, words in run.results["metrics"].items():
            told["metrics"].setdefault(place, words)
        for name, table in run.results["tables"].items():
            told["tables"].setdefault(name, table)
    return told


def _method(method: Method, places: Iterable[str]) -> ComparedMethod:
    model = method.runs[0].results["model"]
    seconds = [run.seconds for run in method.runs if run.seconds is not None]
    found = {
        "name": method.name,
        "runs": [str(run.folder) for run in method.runs],
        **USUAL,
        **{place: _mean(method.figures(place)) for place in places},
        "deviations": {place: _deviation(method.figures(place)) for place in places},
        "mAP_seeds": _list(method.figures("mAP")),
        "mAP_deviation": _deviation(method.figures("mAP")),
        "parameters": model.get("parameters"),
        "trainable_parameters": model.get("trainable_parameters"),
        "gmacs": model.get("gmacs"),
        "image_size": model.get("image_size"),
        "train_seconds": _mean(np.array(seconds)) if seconds else None,
    }
    return cast(ComparedMethod, found)  # figures at any place stand among the rest


def _difference(baseline: Method, method: Method, drawn: dict[str, np.ndarray], labels: list[str]) -> Difference:
    """Of one method to the baseline: per label with intervals, who wins and loses, and pairs that improve together."""
    change = method.ap - baseline.ap
    support = [label["support"] for label in baseline.runs[0].results["labels"]]
    gap = drawn[method.name] - drawn[baseline.name] if drawn else None  # [draws, N]
    rows: list[LabelChange] = []
    for i, name in enumerate(labels):
        rough = support[i] < FEW  # drawing a handful of positives anew says little of other images
        low, high = (math.nan, math.nan) if gap is None or rough else interval(gap[:, i])
        rows.append({"name": name, "change": _number(change[i]), "low": _number(low), "high": _number(high)})
    defined = change[~np.isnan(change)]
    better, worse = int((defined > 0).sum()), int((defined < 0).sum())
    # As the HSQ paper counts pairs that improve: ties count (12 labels better, 3 level: 105 = 15·14/2)
    together, pairs = math.comb(len(defined) - worse, 2), math.comb(len(defined), 2)
    some = None if gap is None else gap[~np.isnan(gap).all(axis=1)]  # draws with any positive
    low, high = (math.nan, math.nan) if some is None else interval(np.nanmean(some, axis=1))
    return {
        "method": method.name,
        "mAP": {
            "change": _number(defined.mean() if len(defined) else math.nan),
            "low": _number(low),
            "high": _number(high),
        },
        "better": better,
        "worse": worse,
        "surely_better": sum(1 for row in rows if row["low"] is not None and row["low"] > 0),
        "surely_worse": sum(1 for row in rows if row["high"] is not None and row["high"] < 0),
        "pairs_together": together,
        "pairs_share": _number(100 * together / pairs if pairs else math.nan),
        "labels": rows,
    }


def resolutions(methods: Sequence[Method]) -> list[Resolutions]:
    """mAP by pixels, for methods that were trained at more than one size (Fig. 6)."""
    lines: dict[tuple[Any, ...], list[Method]] = {}
    for method in methods:
        settings = method.runs[0].settings
        key = tuple(sorted((k, str(v)) for k, v in settings.items() if k not in ALIKE and k != "backbone.image_size"))
        lines.setdefault(key or (method.name,), []).append(method)
    found: list[Resolutions] = []
    for line in lines.values():
        points = sorted((m.runs[0].size or 0, _mean(m.figures("mAP"))) for m in line)
        if len({size for size, _ in points}) > 1:
            head = line[0].runs[0].results["model"]["head"]
            name = line[0].name.replace(
                f"backbone.image_size={line[0].runs[0].settings.get('backbone.image_size')}", ""
            )
            found.append({"name": name.strip() or head, "sizes": [s for s, _ in points], "mAP": [v for _, v in points]})
    return found


def _mean(values: np.ndarray) -> float | None:
    defined = values[~np.isnan(values)]
    return _number(defined.mean()) if len(defined) else None


def _deviation(values: np.ndarray) -> float | None:
    """Over seeds."""
    return _number(np.std(values, ddof=1)) if len(values) > 1 else None


def _list(values: np.ndarray) -> list[float | None]:
    return [_number(value) for value in values]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)
