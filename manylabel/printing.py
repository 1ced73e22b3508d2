"""What the commands print: tables of figures, findings and options, and one line per prediction."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def prediction_line(prediction: Any, top: int | None) -> str:
    if prediction.error:
        return f"{prediction.image}: cannot be read: {prediction.error}"
    above = [entry for entry in prediction.labels if entry.above][:top]
    text = ", ".join(f"{entry.label} {100 * entry.score:.0f} %" for entry in above)
    best = prediction.labels[0]
    return (
        f"{prediction.image}: {text or f'nothing above its threshold (closest: {best.label} {100 * best.score:.0f} %)'}"
    )


def print_figures(results: dict[str, Any]) -> None:
    data = results["data"]
    table = Table(title=Text(f"{results['title']}: {data['name']} {data['split']}, {data['images']} images", "bold"))
    table.add_column("figure")
    table.add_column("percent", justify="right")
    decided = "the highest score" if "top1" in results else "at each label's threshold"
    rows = [
        *((f"top-{k} accuracy", results[f"top{k}"]) for k in (1, 5) if f"top{k}" in results),
        ("mAP (not interpolated)", results["mAP"]),
        ("mAP (VOC-interpolated)", results["mAP_interpolated"]),
        *((f"{name} (at 0.5)", results[name]) for name in ("CP", "CR", "CF1", "OP", "OR", "OF1")),
        (f"CF1 ({decided})", results["at_thresholds"]["CF1"]),
        (f"OF1 ({decided})", results["at_thresholds"]["OF1"]),
        ("calibration error", results["calibration_error"]),
    ]
    rows += [(f"mAP of level {row['level']} ({row['labels']} labels)", row["mAP"]) for row in results.get("levels", ())]
    rows += _zero_shot_rows(results.get("zero_shot"))
    for name, value in rows:
        table.add_row(name, "–" if value is None else f"{value:.2f}")
    out = Console(highlight=False)
    out.print(table)
    for note in [f"{results['labels_scored']} of {results['labels_total']} labels scored", *results["notes"]]:
        out.print(f"  · {note}", markup=False, soft_wrap=True)


def _zero_shot_rows(figures: dict[str, Any] | None) -> list[tuple[str, float | None]]:
    if figures is None:
        return []
    unseen, every = figures["unseen_labels"], figures["unseen_labels"] + figures["seen_labels"]
    rows = []
    for kind, what in (("zsl", f"ZSL, {unseen} unseen labels"), ("gzsl", f"GZSL, all {every} labels")):
        rows.append((f"mAP ({what})", figures[kind]["mAP"]))
        rows += [(f"F1@{k} ({what})", value) for k, value in figures[kind]["f1_at"].items()]
    rows.append(("mAP of the seen labels", figures["seen"]["mAP"]))
    names = {"prevalence": "guessing", "nearest_seen_label": "the score of the seen label nearest in meaning"}
    return rows + [(f"unseen mAP by {names[name]}", value) for name, value in figures["baselines"].items()]


def print_split(result: Any) -> None:
    out = Console(highlight=False)
    table = Table(title=Text("split"))
    for name in ("part", "images", "share", "wanted", "labels missing"):
        table.add_column(name, justify="left" if name == "part" else "right")
    total = sum(result.sizes.values())
    for name, size in result.sizes.items():
        shares = (f"{size / total:.2%}", f"{result.wanted[name]:.2%}")
        table.add_row(name, str(size), *shares, str(len(result.missing[name])))
    out.print(table)
    notes = [f"a label's share in a part is off by {result.deviation:.2%} of its images on average"]
    if result.groups is not None:
        notes.append(f"{result.groups} groups of images were kept together")
    if result.too_rare:
        notes.append(f"{result.too_rare} labels have fewer images than there are parts and cannot be in all of them")
    missing = sorted({label for labels in result.missing.values() for label in labels})
    if missing:
        shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        notes.append(f"{len(missing)} labels are not in every part, because their images belong together: {shown}")
    for note in notes:
        out.print(f"  · {note}", markup=False, soft_wrap=True)


def print_registry(registry: Any) -> None:
    for name, summary in registry.summary().items():
        print(f"{name}: {summary}")
        options = fields(registry.get(name).Options)
        settings = [f"{registry.kind}.{field.name} = {field.default!r}" for field in options]
        width = max(map(len, settings), default=0)
        for field, setting in zip(options, settings, strict=True):
            print(f"    {setting:{width}}  {field.metadata.get('help', '')}")
