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
    rows = [
        ("mAP (not interpolated)", results["mAP"]),
        ("mAP (VOC-interpolated)", results["mAP_interpolated"]),
        *((f"{name} (at 0.5)", results[name]) for name in ("CP", "CR", "CF1", "OP", "OR", "OF1")),
        ("CF1 (at each label's threshold)", results["at_thresholds"]["CF1"]),
        ("OF1 (at each label's threshold)", results["at_thresholds"]["OF1"]),
        ("calibration error", results["calibration_error"]),
    ]
    for name, value in rows:
        table.add_row(name, "–" if value is None else f"{value:.2f}")
    out = Console(highlight=False)
    out.print(table)
    for note in [f"{results['labels_scored']} of {results['labels_total']} labels scored", *results["notes"]]:
        out.print(f"  · {note}", markup=False, soft_wrap=True)


def print_audit(findings: Any, notes: tuple[str, ...]) -> None:
    out = Console(highlight=False)
    table = Table(title=Text(findings.name), show_header=False)
    splits = ", ".join(f"{count} {name}" for name, count in findings.splits.items()) or "none given"
    for name, value in (
        ("images", findings.images),
        ("splits", splits),
        ("labels", findings.labels),
        ("labels per image", f"{findings.labels_per_image:.2f}"),
        ("images without a label", findings.images_without_labels),
        ("unknown entries", f"{findings.unknown_share:.1%}"),
        ("most frequent", ", ".join(f"{k} {v}" for k, v in list(findings.support.items())[:5])),
        ("rarest", ", ".join(f"{k} {v}" for k, v in list(findings.support.items())[-5:])),
        ("fewer than 10 images", len(findings.too_rare_to_judge) + len(findings.too_rare_to_split)),
        ("long side in pixels", " / ".join(str(v) for v in findings.sizes.values()) + " (smallest / median / largest)"),
        ("unreadable", len(findings.unreadable)),
    ):
        table.add_row(name, Text(str(value)))  # a label like [red] is a label, not a colour
    out.print(table)
    for line in [*notes, *(f"{key}: {reason}" for key, reason in list(findings.unreadable.items())[:10])]:
        out.print(f"  · {line}", markup=False, soft_wrap=True)
    for line in findings.warnings:
        out.print(f"  ! {line}", markup=False, soft_wrap=True)
    for line in findings.problems:
        out.print(f"  ✗ {line}", markup=False, soft_wrap=True)
    out.print("trainable" if findings.trainable else "not trainable as it is")


def print_registry(registry: Any) -> None:
    for name, summary in registry.summary().items():
        print(f"{name}: {summary}")
        for field in fields(registry.get(name).Options):
            print(f"    {registry.kind}.{field.name} = {field.default!r:12} {field.metadata.get('help', '')}")
