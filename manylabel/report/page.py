"""Results → one HTML file that needs nothing else: no network, no server, no other file."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from manylabel.compact import compact
from manylabel.core.expert_weights import ExpertWeights
from manylabel.error import DataError
from manylabel.figure import figure_tables, figures
from manylabel.report import curve, wording
from manylabel.report.detail import CheckedBins, CheckedCooccurrence, CheckedDetails, CheckedEpoch, clean_details
from manylabel.report.hard_detail import CheckedHardLabel, CheckedSize
from manylabel.report.schema import LABEL_NEEDED, LABEL_OPTIONAL, CheckedResults, clean_results
from manylabel.storage.atomic import write_text
from manylabel.storage.json_text import read_object
from manylabel.storage.plain_file import MB

FOLDER = Path(__file__).parent
AGAIN = "evaluate the model again to write it anew"
# Each script uses only those before it.
SCRIPTS = (
    "element",
    "chart",
    "curve",
    "table",
    "spread",
    "calibration",
    "cooccurrence",
    "experts",
    "history",
    "mistakes",
    "hard",
    "start",
)


class DrawnHard(TypedDict):
    labels: list[CheckedHardLabel]
    sizes: list[CheckedSize] | None


class Drawn(TypedDict):
    """What the scripts draw from."""

    labels: dict[str, list[Any]]  # column by column
    mAP: float | None
    images: float | None
    curves: list[str | None] | None
    mean: str | None
    calibration: CheckedBins | None
    experts: ExpertWeights | None
    cooccurrence: CheckedCooccurrence | None
    history: list[CheckedEpoch]
    hard: DrawnHard | None


def write_report(results: Mapping[str, Any], details: Mapping[str, Any], out: Path) -> Path:
    """The page for these results, checked here, in the file `out`; sections that `details` does not have are left out."""
    checked = clean_results(results)
    page = render(checked, clean_details(details, len(checked["labels"])))
    write_text(Path(out), page)
    return Path(out)


def report_from_files(folder: Path, out: Path | None = None) -> Path:
    """The page for folder/results.json (and folder/details.json if it is there), by default as folder/report.html."""
    folder = Path(folder)
    results = _read(folder / "results.json")
    path = folder / "details.json"
    details = _read(path) if path.exists() else {}
    try:
        return write_report(results, details, Path(out) if out else folder / "report.html")
    except DataError as error:
        raise DataError(f"{folder}: {error}") from error


def _read(path: Path) -> Mapping[str, Any]:
    if not path.exists():
        raise DataError(
            f"there is no {path}; a finished run has one (go on with: manylabel train --resume --out FOLDER)"
        )
    return read_object(path, most=256 * MB, advice=AGAIN)


def render(results: CheckedResults, details: CheckedDetails) -> str:
    """The page's text, from checked results and details. What was never trained is told apart from the other labels."""
    apart = [label for label in results["labels"] if label["never_trained"]]
    results, details = _learnt(results, details) if apart else (results, details)
    found = figures(results)
    headlines = [figure for figure in found if figure.headline]
    own = {"metrics", "tables", *(figure.place.split(".")[0] for figure in found)}  # shown by what is said of them
    single = {figure.place: figure.definition for figure in found if "." not in figure.place}
    return fill(
        "template.html.j2",
        ("style.css",),
        SCRIPTS,
        payload(results, details),
        **{key: value for key, value in results.items() if key not in own},
        details=details,
        apart=apart,
        sections=sections(results, details),
        lead=headlines[0] if headlines else None,
        cards=headlines[1:],
        beside=[figure for figure in found if figure.alone and figure.value is not None],
        tables=figure_tables(results),
        titles={**wording.TITLES, **{figure.place: figure.heading for figure in found}},
        meaning={**single, **results["definitions"], **wording.DEFINITIONS},
        freeze=wording.FREEZE,
        gates_say=wording.GATES,
    )


def _learnt(results: CheckedResults, details: CheckedDetails) -> tuple[CheckedResults, CheckedDetails]:
    """Results and details of the labels that count in the figures."""
    kept = [i for i, label in enumerate(results["labels"]) if not label["never_trained"]]
    curves = [details["curves"][i] for i in kept] if details["curves"] else []
    return {**results, "labels": [results["labels"][i] for i in kept]}, {**details, "curves": curves}


def fill(
    template: str, styles: Iterable[str], scripts: Iterable[str], data: Mapping[str, object], /, **values: Any
) -> str:
    """A page from a template of this folder, with its styles, scripts, the data they draw from, and a policy inside."""
    environment = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    for wording_of in (wording.percent, wording.with_unit, wording.share, wording.count, compact, wording.date):
        environment.filters[wording_of.__name__] = wording_of
    style = "".join((FOLDER / name).read_text(encoding="utf-8") for name in styles)
    parts = [(FOLDER / "script" / f"{name}.js").read_text(encoding="utf-8") for name in scripts]
    script = '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"
    return environment.get_template(template).render(
        **values,
        style=Markup(style),
        script=Markup(script),
        payload=Markup(embed(data)),
        policy=policy(script, style),
    )


def sections(results: CheckedResults, details: CheckedDetails) -> dict[str, str]:
    """Anchor → title of the parts of the page that there is something to show for, in order."""
    spread = any(label["ap"] is not None and label["support"] for label in results["labels"])
    present = {
        "labels": ("Labels", True),
        "curves": ("Curves", any(details["curves"])),
        "spread": ("Support", spread),
        "calibration": ("Calibration", bool(details["calibration"])),
        "history": ("Training", bool(details["history"])),
        "experts": ("Experts", bool(details["experts"])),
        "cooccurrence": ("Co-occurrence", bool(details["cooccurrence"])),
        "mistakes": ("Mistakes", bool(details["mistakes"])),
        "hits": ("Hits", bool(details["hits"])),
        "hard": ("Hard", bool(details["hard"])),
    }
    return {anchor: title for anchor, (title, shown) in present.items() if shown}


def payload(results: CheckedResults, details: CheckedDetails) -> Drawn:
    """Labels go column by column: with thousands of them that is half the size."""
    labels, curves, hard = results["labels"], details["curves"], details["hard"]
    columns: dict[str, list[Any]] = {"name": [label["name"] for label in labels]}
    for key in LABEL_NEEDED + LABEL_OPTIONAL:
        columns[key] = [_short(label[key]) for label in labels]
    return {
        "labels": columns,
        "mAP": _short(results.get("mAP")),
        "images": results["data"]["images"],
        "curves": [curve.pack(points) if points else None for points in curves] if any(curves) else None,
        "mean": curve.pack(curve.mean(curves)) if any(curves) else None,
        "calibration": details["calibration"],
        "experts": details["experts"],
        "cooccurrence": details["cooccurrence"],
        "history": details["history"],
        "hard": None if hard is None else {"labels": hard["labels"], "sizes": hard["sizes"]},
    }


def _short(value: float | None) -> float | int | None:
    if value is None:
        return None
    return int(value) if value == int(value) else float(f"{value:.6g}") if abs(value) < 0.01 else round(value, 4)


def embed(values: Mapping[str, object]) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or start another."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)  # ASCII, so U+2028 and U+2029 are escaped too
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def policy(script: str, style: str) -> str:
    """A content policy under which only our own script and style run, and nothing is ever fetched."""

    def digest(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}'"

    return (
        f"default-src 'none'; img-src data:; script-src {digest(script)}; style-src {digest(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
