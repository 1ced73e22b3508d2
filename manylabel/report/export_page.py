"""What an export was found to be → one HTML file beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manylabel.report.page import fill
from manylabel.storage.atomic import write_text


def page_of(file: Path) -> Path:
    """Where the page of an exported file is."""
    return file.with_name(f"{file.name}.html")


def write_export_page(file: Path, facts: Mapping[str, Any]) -> None:
    """From the metadata of the file."""
    proofs = facts["proof"]
    slower = [
        f"It is not faster than the bundle{f' (task {name})' if len(proofs) > 1 else ''}: "
        f"{proof['file_images_per_second']} images/s against {proof['bundle_images_per_second']} by torch."
        for name, proof in proofs.items()
        if not proof["faster"]
    ]
    in_float, speeds = facts.get("float_images_per_second"), [p["file_images_per_second"] for p in proofs.values()]
    if in_float is not None and min(speeds) <= in_float:
        slower.append(f"In int8 it is not faster than in float32: {min(speeds)} images/s against {in_float}.")
    text = fill("export.html.j2", ("style.css", "comparison.css"), (), {}, file=file.name, facts=facts, warnings=slower)
    write_text(page_of(file), text)
