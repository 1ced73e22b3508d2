"""The comparison as pictures: what the HSQ paper shows in Figs. 3–7, for any runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from manylabel.core.colours import COLOURS
from manylabel.core.comparison import Comparison, Difference, ExpertLoad, PairGap
from manylabel.report.drawing import axes_in, colour, plain, slug

MOST_LABELS = 100  # in one picture of differences


def draw_figures(comparison: Comparison, folder: Path) -> list[tuple[str, Path]]:
    """(caption, file) of every figure there is something to show for."""
    drawn: list[tuple[str, Path]] = []

    def add(name: str, caption: str, draw: Callable[[Path], None]) -> None:
        path = folder / f"{len(drawn) + 1:02d}-{name}.png"  # numbered: two labels may become the same name
        draw(path)
        drawn.append((caption, path))

    add("mAP", "Mean average precision of each method; dots are seeds.", lambda p: _means(comparison, p))
    base = comparison["baseline"]
    for row in comparison["differences"]:
        add(
            f"labels-{slug(row['method'])}",
            f"AP of each label: {row['method']} less {base}, with 95 % intervals; filled: surely above or below.",
            lambda p, row=row: _changes(row, base, p),  # type: ignore[misc]
        )
    if comparison["pairs"]:
        add(
            "pair-gaps",
            "Gap between the two labels of a pair: smaller is more even.",
            lambda p: _gaps(comparison, p),
        )
    for pair in comparison["pairs"]:
        a, b = pair["labels"]
        add(
            f"pair-{slug(a)}-{slug(b)}",
            f"Average precision of {a} and {b}: the upper right is better.",
            lambda p, pair=pair: _pair(pair, p),  # type: ignore[misc]
        )
    if comparison["resolutions"]:
        add("resolutions", "mAP by the size of the images.", lambda p: _resolutions(comparison, p))
    for load in comparison["experts"]:
        for number in range(len(load["layers"])):
            add(
                f"experts-{slug(load['method'])}-{number + 1}",
                f"{load['method']}, layer {number + 1}: mean weight of each expert for each label (logarithmic); "
                "the last row is the mean over labels.",
                lambda p, load=load, number=number: _load(load, number, p),  # type: ignore[misc]
            )
    return drawn


def _means(c: Comparison, path: Path) -> None:
    methods = c["methods"]
    with axes_in(path, 7, 1 + 0.42 * len(methods)) as axes:
        y = np.arange(len(methods))
        axes.barh(y, [m["mAP"] or 0 for m in methods], height=0.6, color=[colour(i) for i in range(len(y))], alpha=0.75)
        for i, method in enumerate(methods):
            seeds = [v for v in method["mAP_seeds"] if v is not None]
            axes.plot(seeds, np.full(len(seeds), i), "o", color="black", markersize=3)
        values = [v for m in methods for v in m["mAP_seeds"] if v is not None]
        if values:
            margin = max(0.5, 0.3 * (max(values) - min(values)))
            axes.set_xlim(max(0, min(values) - 3 * margin), min(100, max(values) + margin))
        axes.set_yticks(y, [plain(m["name"]) for m in methods])
        axes.invert_yaxis()
        axes.set_xlabel("mAP, not interpolated (%); the axis does not begin at 0")


def _changes(row: Difference, baseline: str, path: Path) -> None:
    labels = [(change, label) for label in row["labels"] if (change := label["change"]) is not None]
    labels.sort(key=lambda pair: -pair[0])
    if len(labels) > MOST_LABELS:
        labels = labels[: MOST_LABELS // 2] + labels[-MOST_LABELS // 2 :]
    with axes_in(path, 7, 1.2 + 0.17 * len(labels)) as axes:
        for i, (change, label) in enumerate(labels):
            low, high = label["low"], label["high"]
            sure = low is not None and high is not None and (low > 0 or high < 0)
            shade = COLOURS[0] if change >= 0 else COLOURS[1]
            if low is not None:
                axes.plot([low, high], [i, i], color=shade, linewidth=1, alpha=0.6)
            axes.plot(change, i, "o", color=shade, markersize=4, fillstyle="full" if sure else "none")
        axes.axvline(0, color="#999", linewidth=0.8)
        axes.set_yticks(range(len(labels)), [plain(label["name"]) for _, label in labels], fontsize=7)
        axes.set_ylim(len(labels) - 0.4, -0.6)
        axes.set_xlabel(f"change of average precision against {plain(baseline)} (percentage points)")


def _gaps(c: Comparison, path: Path) -> None:
    names = [m["name"] for m in c["methods"]]
    with axes_in(path, 7, 1.2 + 0.3 * len(names) * len(c["pairs"])) as axes:
        place, ticks = 0.0, []
        for pair in c["pairs"]:
            for i, name in enumerate(names):
                axes.barh(place, pair["gap"][name] or 0, height=0.8, color=colour(i))
                ticks.append((place, plain(f"{' / '.join(pair['labels'])}: {name}")))
                place += 1
            place += 0.6
        axes.set_yticks([t for t, _ in ticks], [text for _, text in ticks], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("difference between the two labels' average precision (%)")


def _pair(pair: PairGap, path: Path) -> None:
    with axes_in(path, 5, 4.2) as axes:
        for i, (name, (a, b)) in enumerate(pair["ap"].items()):
            if a is not None and b is not None:
                axes.plot(a, b, "o", color=colour(i), markersize=8, label=plain(name))
        axes.set_xlabel(f"{plain(pair['labels'][0])}: average precision (%)")
        axes.set_ylabel(f"{plain(pair['labels'][1])}: average precision (%)")
        axes.margins(0.2)
        axes.legend(fontsize=8, frameon=False)


def _resolutions(c: Comparison, path: Path) -> None:
    with axes_in(path, 6, 4) as axes:
        for i, line in enumerate(c["resolutions"]):
            axes.plot(line["sizes"], line["mAP"], "o-", color=colour(i), label=plain(line["name"]))
        axes.set_xticks(sorted({size for line in c["resolutions"] for size in line["sizes"]}))
        axes.set_xlabel("pixels")
        axes.set_ylabel("mAP (%)")
        axes.legend(fontsize=8, frameon=False)


def _load(load: ExpertLoad, number: int, path: Path) -> None:
    weights = np.array(load["layers"][number])
    rows = np.vstack([weights[:MOST_LABELS], weights.mean(axis=0)])
    names = [*load["gates"][:MOST_LABELS], "mean of all"]
    with axes_in(path, 2.6 + 0.24 * len(load["experts"]), 1.6 + 0.16 * len(names)) as axes:
        image = axes.imshow(np.log10(np.maximum(rows, 1e-4)), aspect="auto", cmap="viridis", vmin=-3, vmax=0)
        axes.set_yticks(range(len(names)), [plain(name[:28]) for name in names], fontsize=6)
        axes.set_xticks(range(len(load["experts"])), load["experts"], rotation=90, fontsize=6)
        axes.axhline(len(names) - 1.5, color="white", linewidth=1.5)
        axes.figure.colorbar(image, ax=axes, label="log₁₀ of the mean weight", shrink=0.6)
