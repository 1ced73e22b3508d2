"""Every figure of merit, registered by the file that computes it: its name, its words and its function stand there only.

What holds figures (results.json) describes them with these words, so that what shows them needs to know none of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from manylabel.core.described import Described, Words
from manylabel.error import ConfigError, ManylabelError
from manylabel.suggest import closest

MULTI_LABEL, SINGLE_LABEL, DETECTION = "multi_label", "single_label", "detection"
CLASSIFICATION = (MULTI_LABEL, SINGLE_LABEL)
# Kind of task → the kind whose metrics it has beside its own; manylabel.task adds its kinds.
KINDS = {kind: kind for kind in (*CLASSIFICATION, DETECTION)}
PERCENT = "percent"
# What results.json and comparison.json have beside figures.
FACTS = """schema made_by title created data model warnings notes definitions metrics tables labels labels_scored
labels_total levels tasks name runs parameters trainable_parameters gmacs image_size
train_seconds deviations mAP_seeds mAP_deviation"""
TAKEN = frozenset(FACTS.split())


@dataclass(frozen=True)
class Table:
    """Figures that are read together, as rows and columns."""

    name: str
    title: str
    caption: str
    rows: str  # what the rows are
    columns: tuple[str, ...] = ()  # that are there even where no figure is in them


@dataclass(frozen=True)
class Metric:
    """A figure of merit: what it is called, what it means, and how it is computed.

    `function` takes what a judged task knows (judged.py) and gives a float: NaN where it is undefined, None where it has no
    meaning, so that results do not hold it. In percent it gives a share between 0 and 1.
    Words may hold counts of the results in braces, such as {labels_total}.
    """

    name: str
    title: str  # in a list of figures
    definition: str  # in a sentence
    function: Callable[[Any], float | None]
    kinds: tuple[str, ...] = CLASSIFICATION  # of tasks
    better: Literal["higher", "lower"] = "higher"
    unit: str = PERCENT
    heading: str = ""  # over the figure; the title unless it is said
    place: str = ""  # in results.json, with dots between the keys; its name unless it is said
    holder: str = ""  # a part of its place that is there even where no figure is in it
    headline: bool = False  # among the first things to look at
    goals: tuple[str, ...] = ()  # kinds of tasks whose models are chosen and compared by it
    order: int = 100  # low ones first
    table: Table | None = None
    row: str = ""
    column: str = ""
    by_level: str = ""  # its key among the figures of each level of a hierarchy, if it has a place there
    fewest_labels: int = 0  # with fewer of them it says nothing, so that nobody shows it

    @property
    def where(self) -> str:
        return self.place or self.name

    def is_goal(self, kind: str) -> bool:
        return kind in self.goals or KINDS.get(kind) in self.goals

    def measure(self, judged: Any) -> float | None:
        """As results hold it (percent as percent), NaN where undefined; None where it has no meaning."""
        value = self.function(judged)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, Real) or math.isinf(value):
            raise ManylabelError(f"metric {self.name} gave {value!r:.60}; it must give a finite number, NaN or None")
        if self.unit != PERCENT:
            return float(value)
        if not math.isnan(value) and not -1e-6 <= value <= 1 + 1e-6:
            raise ManylabelError(
                f"metric {self.name} gave {value:g}; a metric in percent gives a share between 0 and 1"
            )
        return 100 * float(value)

    def described(self, kind: str, counts: Mapping[str, Any]) -> Words:
        """For JSON, of a task of this kind."""
        words = _Counts(counts)
        told: Words = {
            "title": self.title.format_map(words),
            "heading": (self.heading or self.title[:1].upper() + self.title[1:]).format_map(words),
            "definition": self.definition,
            "unit": self.unit,
            "better": self.better,
            "headline": self.headline,
        }
        if self.is_goal(kind):
            told["goal"] = True
        if self.table is not None:
            told["table"], told["row"] = self.table.name, self.row.format_map(words)
            told["column"] = self.column
        return told


class Metrics:
    """All of them, by name. Two of one kind of task cannot have the same name or place."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self.notes: dict[str, str] = {}  # what is said of several figures together

    def add(self, metric: Metric) -> Metric:
        where = metric.where.split(".")
        if not all(where) or where[0] in TAKEN:
            raise ConfigError(
                f"metric {metric.name!r}: results have something else at {metric.where!r}; give it another"
            )
        if odd := set(metric.kinds) - set(KINDS) or (set() if metric.kinds else {"no kind"}):
            raise ConfigError(f"metric {metric.name!r} is for {odd.pop()!r}, which is none of {', '.join(KINDS)}")
        for other in self._metrics.values():
            if other.name == metric.name or (other.where == metric.where and set(other.kinds) & set(metric.kinds)):
                raise ConfigError(f"two metrics are called {metric.name!r}, or are both kept at {metric.where!r}")
        self._metrics[metric.name] = metric
        return metric

    def remove(self, name: str) -> None:
        del self._metrics[name]

    def __iter__(self) -> Iterator[Metric]:
        return iter(sorted(self._metrics.values(), key=lambda metric: metric.order))

    def get(self, name: str) -> Metric:
        if name not in self._metrics:
            raise ConfigError(f"there is no metric {name!r:.100}{closest(name, self._metrics)}")
        return self._metrics[name]

    def of(self, *kinds: str) -> list[Metric]:
        wanted = {name for kind in kinds for name in (kind, KINDS.get(kind, kind))}
        return [metric for metric in self if wanted & set(metric.kinds)]

    def goal(self, kind: str) -> Metric:
        """What models of this kind are chosen by: the first of its goals."""
        found = [metric for metric in self.of(kind) if metric.is_goal(kind)]
        return next((metric for metric in found if kind in metric.goals), found[0])

    def definitions(self) -> dict[str, str]:
        """What figures of classification mean, one at a time or several together."""
        single = {metric.where: metric.definition for metric in self.of(*CLASSIFICATION) if "." not in metric.where}
        return single | self.notes


class _Counts(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "…"


METRICS = Metrics()


def measure_as(kind: str, other: str) -> None:
    """Results of a kind of task have the metrics of `other`, and its own."""
    if KINDS.get(other) != other:
        raise ConfigError(f"kind {kind!r} is measured as {other!r:.100}, which has no metrics of its own")
    KINDS.setdefault(kind, other)


def describe(held: Iterable[Metric], kind: str, counts: Mapping[str, Any], *, by_name: bool = False) -> Described:
    """In words of results with these counts."""
    told = [metric for metric in held if counts.get("labels_total", math.inf) >= metric.fewest_labels]
    tables = {metric.table.name: metric.table for metric in told if metric.table is not None}
    words = _Counts(counts)
    return {
        "metrics": {metric.name if by_name else metric.where: metric.described(kind, counts) for metric in told},
        "tables": {
            name: {
                "title": table.title,
                "caption": table.caption.format_map(words),
                "rows": table.rows,
                "columns": list(table.columns),
            }
            for name, table in tables.items()
        },
    }


def measured(judged: Any, names: Iterable[str]) -> dict[str, float | None]:
    """Metrics by name as results hold them: None where undefined; what has no meaning here is left out."""
    found = {name: METRICS.get(name).measure(judged) for name in names}
    return {name: None if math.isnan(value) else value for name, value in found.items() if value is not None}
