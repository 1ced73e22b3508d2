"""What `manylabel hard` leaves in a folder: the page, figures, JSON and CSV."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from manylabel.core.hard_findings import HardFindings
from manylabel.data.thumbnail import thumbnail
from manylabel.hard_runs.figures import draw_figures
from manylabel.hard_runs.label_file import label_csv
from manylabel.hard_runs.run_data import RunData
from manylabel.report.hard_page import pictured_files, write_hard_page
from manylabel.storage.atomic import write_json
from manylabel.storage.receipt import write_ours


def write_hard_files(found: HardFindings, data: RunData | None, folder: Path, maps: Mapping[str, str] = {}) -> None:
    """`maps`: by image and label, from `draw_maps`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "hard.json", found)
    write_ours(folder / "labels.csv", label_csv(found))
    figures = draw_figures(found, folder / "figures")
    write_hard_page(found, figures, _thumbnails(found, data), folder / "hard.html", maps)


def write_hard_html(found: HardFindings, data: RunData | None, page: Path, maps: Mapping[str, str] = {}) -> None:
    """The page alone."""
    with tempfile.TemporaryDirectory() as folder:
        write_hard_page(found, draw_figures(found, Path(folder)), _thumbnails(found, data), page, maps)


def _thumbnails(found: HardFindings, data: RunData | None) -> dict[str, str | None]:
    if data is None:
        return {}
    return {file: thumbnail(data.judged.source, file) for file in pictured_files(found)}
