"""Hard instances as pictures: labels, what goes with their hard share, object sizes, differences of two runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from manylabel.core.colours import COLOURS
from manylabel.core.hard_findings import HardFindings, RankCorrelation, SizeDifference, Sizes
from manylabel.hard import FEWEST_POSITIVES
from manylabel.report.drawing import axes_in, colour, plain

MOST_LABELS = 40


def draw_figures(found: HardFindings, folder: Path) -> list[tuple[str, Path]]:
    """(caption, file) of every figure there is something to show for."""
    drawn: list[tuple[str, Path]] = []

    def add(name: str, caption: str, draw: Callable[[Path], None]) -> None:
        path = folder / f"{len(drawn) + 1:02d}-{name}.png"
        draw(path)
        drawn.append((caption, path))

    if any(row["hard"] for row in found["labels"]):
        add("labels", "Share of a label's instances that are hard, the largest first.", lambda p: _labels(found, p))
    for c in found["correlations"]:
        if c["of"][0] == "share" and c["rho"] is not None:
            caption = f"{c['name'].capitalize()}: rank correlation {c['rho']:+.2f}"
            caption += f" (95 % {c['low']:+.2f} … {c['high']:+.2f}) over {c['labels']} labels."
            add(f"hard-and-{c['of'][1]}", caption, lambda p, c=c: _scatter(found, c, p))  # type: ignore[misc]
    sizes, second = found["sizes"], found["second"]
    if sizes is not None:
        caption = "Share of instances that are hard, by the size of the label's largest object in the image."
        add("hard-by-size", caption, lambda p: _sizes(sizes, p))
    if second is not None and second["sizes"] is not None:
        caption = "Mean average precision by object size, of both runs over the same labels."
        rows, names = second["sizes"], second["names"]
        add("ap-by-size", caption, lambda p: _two_by_size(rows, names, p))
    return drawn


def _labels(found: HardFindings, path: Path) -> None:
    rows = [row for row in found["labels"] if row["hard"]][:MOST_LABELS]
    with axes_in(path, 7, 1 + 0.2 * len(rows)) as axes:
        axes.barh(range(len(rows)), [100 * row["share"] for row in rows], color=COLOURS[1], height=0.7)
        names = [plain(f"{row['name']} ({row['hard']} of {row['support']})") for row in rows]
        axes.set_yticks(range(len(rows)), names, fontsize=8)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("hard instances (% of the images with the label)")


def _scatter(found: HardFindings, correlation: RankCorrelation, path: Path) -> None:
    key = correlation["of"][1]
    assert key != "cost"  # is of pairs, and stands first
    rows = [row for row in found["labels"] if row.get(key) is not None and row["support"] >= FEWEST_POSITIVES]
    scale = {"size": 100}.get(key, 1)
    titles = {
        "ap": "average precision (%)",
        "train": "training images",
        "size": "median size of the largest object (% of the image)",
        "alpha": "mean share of earlier stages",
    }
    with axes_in(path, 6, 4.2) as axes:
        x, y = scale * np.array([row[key] for row in rows], float), 100 * np.array([row["share"] for row in rows])
        axes.plot(x, y, "o", color=COLOURS[0], markersize=4, alpha=0.7)
        for i in np.argsort(-y, kind="stable")[:6]:
            axes.annotate(plain(rows[i]["name"]), (x[i], y[i]), xytext=(4, 3), textcoords="offset points", fontsize=7)
        if key in ("train", "size", "alpha") and (x > 0).all():
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter("{x:g}" if x.max() < 20 * x.min() else "")
        axes.set_xlabel(titles[key])
        axes.set_ylabel("hard instances (%)")


def _sizes(sizes: Sizes, path: Path) -> None:
    rows = sizes["rows"]
    with axes_in(path, 6, 3.4) as axes:
        for i, row in enumerate(rows):
            axes.bar(i, 100 * (row["share"] or 0), color=COLOURS[1], width=0.6)
            if row["low"] is not None and row["high"] is not None:
                axes.plot([i, i], [100 * row["low"], 100 * row["high"]], color="black", linewidth=1.2)
        names = [f"{row['name']}\n{row['area']}\n{row['hard']} of {row['pairs']}" for row in rows]
        axes.set_xticks(range(len(rows)), names, fontsize=8)
        axes.set_ylabel("hard instances (%)")


def _two_by_size(rows: list[SizeDifference], runs: list[str], path: Path) -> None:
    with axes_in(path, 6, 3.6) as axes:
        means = [row["first"] for row in rows], [row["second"] for row in rows]
        for k, (run, name) in enumerate(zip(means, runs, strict=True)):
            at = np.arange(len(rows)) + 0.36 * (k - 0.5)
            axes.bar(at, [mean or 0 for mean in run], width=0.34, color=colour(k), label=plain(name))
        names = [f"{row['name']}\n{row['labels_scored']} labels, {row['positives']} positives" for row in rows]
        axes.set_xticks(range(len(rows)), names, fontsize=8)
        axes.set_ylabel("mAP (%)")
        axes.legend(fontsize=8, frameon=False, loc="upper left")
        axes.margins(y=0.25)
