"""What the commands print: tables of figures, findings and options, and one line per prediction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from rich.table import Table
from rich.text import Text

from manylabel.core.results import JudgedOn, Results
from manylabel.figure import figures, headlines_first, number, with_unit
from manylabel.runtime.rich_console import Terminal
from manylabel.runtime.terminal import echo

LEVEL = ("level", "labels", "scored")  # what a level of a hierarchy is, beside its figures


def prediction_line(prediction: Any, top: int | None) -> str:
    if prediction.error:
        return f"{prediction.image}: cannot be read: {prediction.error}"
    above = [entry for entry in prediction.labels if entry.above][:top]
    text = ", ".join(f"{entry.label} {100 * entry.score:.0f} %" for entry in above)
    best = prediction.labels[0]
    return (
        f"{prediction.image}: {text or f'nothing above its threshold (closest: {best.label} {100 * best.score:.0f} %)'}"
    )


def written_images(path: Any, read: int, given: int) -> str:
    """What a file of predictions holds."""
    unread = given - read
    return f"{read} images are in {path}" + (f"; {unread} could not be read" if unread else "")


def print_warnings(out: Terminal, warnings: Iterable[str]) -> None:
    """What must be read before any figure."""
    for warning in warnings:
        out.print(f"! {warning}", style="bold red", soft_wrap=True)


def print_figures(results: Results) -> None:
    data: JudgedOn = results["data"]
    table = Table(title=Text(f"{results['title']}: {data['name']} {data['split']}, {data['images']} images", "bold"))
    table.add_column("figure")
    table.add_column("percent", justify="right")
    for figure in headlines_first(figures(results)):
        table.add_row(Text(figure.title), with_unit(figure.value, figure.unit))
    for level in results.get("levels", ()):
        for key, value in level.items():
            if key not in LEVEL:
                table.add_row(Text(f"{key} of level {level['level']} ({level['labels']} labels)"), number(value))
    out = Terminal()
    print_warnings(out, results.get("warnings", ()))
    out.print(table)
    for note in [f"{results['labels_scored']} of {results['labels_total']} labels scored", *results["notes"]]:
        out.print(f"  · {note}", soft_wrap=True)


def print_split(result: Any) -> None:
    out = Terminal()
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
        out.print(f"  · {note}", soft_wrap=True)


def print_registry(registry: Any) -> None:
    for name, summary in registry.summary().items():
        echo(f"{name}: {summary}")
        options = fields(registry.get(name).Options)
        settings = [f"{registry.section}.{field.name} = {field.default!r}" for field in options]
        width = max(map(len, settings), default=0)
        for field, setting in zip(options, settings, strict=True):
            echo(f"    {setting:{width}}  {field.metadata.get('help', '')}")
