"""Precision, recall and F1 as metrics: for each way to decide the papers' six figures, and three at the K highest scores."""

from __future__ import annotations

from collections.abc import Callable

from manylabel.metric.f1 import F1, f1_at_k, f1_of_decisions, f1_scores
from manylabel.metric.judged import Judged
from manylabel.metric.registry import CLASSIFICATION, METRICS, MULTI_LABEL, SINGLE_LABEL, Metric, Table

METRICS.notes |= {
    "CP CR CF1": "precision and recall averaged over labels at score 0.5, and the harmonic mean of these two averages",
    "OP OR OF1": "precision, recall and F1 over all decisions together at score 0.5",
    "top3": "the same six figures when only an image's three highest scores count, and only from 0.5 on",
    "at_thresholds": "the same six figures with each label's own fitted threshold instead of 0.5",
    "f1_at": "over all decisions, when the K highest scores of every image are taken whatever they are",
}
SIX = {
    "CP": "precision of each label, averaged over the labels",
    "CR": "recall of each label, averaged over the labels",
    "CF1": "harmonic mean of CP and CR, so every label weighs the same",
    "OP": "precision over all decisions together",
    "OR": "recall over all decisions together",
    "OF1": "harmonic mean of OP and OR, so frequent labels weigh more",
}
HEADLINES = ("CF1", "OF1")
THREE = {"precision": "OP", "recall": "OR", "f1": "OF1"}
TOP = (3, 5)
DECISIONS = Table(
    "decisions",
    "Decisions",
    "Precision, recall and F1 in percent: per label and averaged (C), and over all decisions together (O).",
    "Predicted when",
)
TOP_K = Table("top_k", "Top k", f"{METRICS.notes['f1_at'].capitalize()}.", "k")
Decided = Callable[[Judged], F1 | None]


def _at_half(judged: Judged) -> F1:
    return f1_scores(judged.scores, judged.counted)


def _top3(judged: Judged) -> F1:
    return f1_scores(judged.scores, judged.counted, top_k=3)


def _as_decided(judged: Judged) -> F1 | None:
    return None if judged.decisions is None else f1_of_decisions(judged.decisions, judged.counted)


def _taken(k: int) -> Decided:
    return lambda judged: f1_at_k(judged.scores, judged.counted, k) if k <= judged.scores.shape[1] else None


def _figure(decided: Decided, name: str) -> Callable[[Judged], float | None]:
    def measure(judged: Judged) -> float | None:
        found = judged.once(decided)
        return None if found is None else float(getattr(found, name))

    return measure


def _add_six(name: str, place: str, row: str, how: str, decided: Decided, kinds: tuple[str, ...], order: int) -> None:
    """The six figures of one way to decide, as a row of the table."""
    for number, (column, meaning) in enumerate(SIX.items()):
        METRICS.add(
            Metric(
                f"{name}{column}",
                f"{column} ({how})",
                meaning,
                _figure(decided, column),
                kinds,
                heading=column,
                place=f"{place}{column}",
                headline=not name and column in HEADLINES,
                order=order + number,
                table=DECISIONS,
                row=row,
                column=column,
                by_level=column if place == "at_thresholds." and column in HEADLINES else "",
            )
        )


_add_six("", "", "Score ≥ 0.5", "at 0.5", _at_half, CLASSIFICATION, 10)
_add_six("top3.", "top3.", "Score ≥ 0.5, top 3", "at 0.5, top 3", _top3, CLASSIFICATION, 30)
AT_THRESHOLDS = ("at_thresholds.", "Score ≥ its threshold", "at each label's threshold")
_add_six(AT_THRESHOLDS[0], *AT_THRESHOLDS, _as_decided, (MULTI_LABEL,), 40)
_add_six("highest.", AT_THRESHOLDS[0], "Highest score", "the highest score", _as_decided, (SINGLE_LABEL,), 40)
for k in TOP:
    decided = _taken(k)
    for key, name in THREE.items():
        METRICS.add(
            Metric(
                f"f1_at.{k}.{key}",
                f"{'F1' if key == 'f1' else key}@{k}",
                f"{SIX[name].replace('OP and OR', 'the two')}, when the {k} highest scores of every image are taken",
                _figure(decided, name),
                holder="f1_at",
                heading=key.capitalize(),
                order=60 + k,
                table=TOP_K,
                row=str(k),
                column=key.capitalize(),
            )
        )
