"""Hard instances of a run (`manylabel hard`) → one HTML file that needs nothing else."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path

from manylabel.core.hard_findings import HardFindings, LabelImages
from manylabel.report.page import fill
from manylabel.storage.atomic import write_text

IMAGES = 12
OF_A_LABEL = 5  # at either end


def pictured_files(found: HardFindings) -> list[str]:
    """The images that the page shows, each once."""
    files = [image["file"] for image in found["images_shown"][:IMAGES]]
    for label in found["pictured"]:
        files += [row["file"] for row in [*label["largest"][:OF_A_LABEL], *label["smallest"][:OF_A_LABEL]]]
    files += [row["file"] for row in (found["second"]["found"] if found["second"] else [])[:IMAGES]]
    return list(dict.fromkeys(files))


def write_hard_page(
    found: HardFindings,
    figures: Sequence[tuple[str, Path]],
    thumbnails: Mapping[str, str | None],
    out: Path,
    maps: Mapping[str, str] = {},
) -> Path:
    """The page in the file `out`; `figures` are (caption, PNG file), `thumbnails` data addresses by image,
    `maps` by image and label of what a second run finds."""
    pictures = [
        {"caption": caption, "picture": "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()}
        for caption, path in figures
    ]
    alphas = sorted((row for row in found["labels"] if "alpha" in row), key=lambda row: -row["alpha"])
    labels: list[LabelImages] = [
        {**label, "largest": label["largest"][:OF_A_LABEL], "smallest": label["smallest"][:OF_A_LABEL]}
        for label in found["pictured"]
    ]
    values = {**found, "images_shown": found["images_shown"][:IMAGES], "pictured": labels}
    text = fill(
        "hard.html.j2",
        ("style.css", "comparison.css", "hard.css"),
        (),
        {},
        **values,
        figures=pictures,
        alphas=alphas,
        thumbnails=thumbnails,
        maps=maps,
    )
    write_text(out, text)
    return out
