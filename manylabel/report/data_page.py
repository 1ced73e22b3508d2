"""Findings about data (`manylabel data check`) → one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manylabel.error import DataError
from manylabel.report.page import fill
from manylabel.report.value import THUMBNAIL, text
from manylabel.storage.atomic import write_text

SCRIPTS = ("element", "chart", "cooccurrence", "data_support", "data_images", "data_start")
NEEDED = (
    "name", "trainable", "images", "splits", "labels", "labels_per_image", "labels_per_image_counts",
    "images_without_labels", "unknown_share", "support", "support_by_split", "known_share", "too_rare_to_split",
    "too_rare_to_judge", "cooccurrence", "similar_names", "image_sizes", "wrong_sizes", "unreadable", "suspicious",
    "duplicates", "leaks", "contradictions", "unlisted", "problems", "warnings",
)  # fmt: skip
GROUPS, PER_GROUP = 40, 6  # groups of pictures, and pictures of one group, that are shown
ROWS = 100  # of a table of pairs or files
KINDS = {
    "blank": "Nearly one colour",
    "tiny": "Very small",
    "narrow": "Very long and narrow",
    "huge": "Much larger than the others",
    "placeholder": "One picture for different labels",
}


def write_data_page(findings: Mapping[str, Any], out: Path) -> Path:
    """The page for these findings in the file `out`.

    `findings` is what `data check --json` writes; with a key `pictures` (image → data URI) the images are shown as well.
    """
    missing = [key for key in NEEDED if key not in findings]
    if missing:
        raise DataError(f"the findings lack {', '.join(missing)}; check the data again to write them anew")
    write_text(Path(out), _render(_clean(dict(findings), "findings")))
    return Path(out)


def _render(findings: dict[str, Any]) -> str:
    pictures = {
        key: uri
        for key, uri in findings.get("pictures", {}).items()
        if isinstance(uri, str) and THUMBNAIL.fullmatch(uri)
    }
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for entry in findings["suspicious"]["images"]:
        by_kind.setdefault(entry["kind"], []).append(entry)
    return fill(
        "data.html.j2",
        ("style.css", "data.css"),
        SCRIPTS,
        _drawn(findings),
        **{**findings, "pictures": pictures},
        by_kind=by_kind,
        kinds=KINDS,
        sections=_sections(findings),
        most_groups=GROUPS,
        most_of_a_group=PER_GROUP,
        most_rows=ROWS,
    )


def _sections(findings: dict[str, Any]) -> dict[str, str]:
    """Anchor → title of the parts of the page that there is something to show for, in order."""
    company = findings["cooccurrence"]
    present = {
        "labels": ("Labels", True),
        "company": ("Co-occurrence", len(company["names"]) > 1),
        "names": ("Names", bool(findings["similar_names"])),
        "sizes": ("Sizes", bool(findings["image_sizes"]["most_frequent"])),
        "wrong-sizes": ("Wrong sizes", bool(findings["wrong_sizes"]["count"])),
        "leaks": ("Leaks", bool(findings["leaks"]["count"])),
        "contradictions": ("Contradictions", bool(findings["contradictions"]["count"])),
        "duplicates": ("Duplicates", bool(findings["duplicates"]["group_count"])),
        "suspicious": ("Suspicious", bool(findings["suspicious"]["images"])),
        "unreadable": ("Unreadable", bool(findings["unreadable"])),
    }
    return {anchor: title for anchor, (title, shown) in present.items() if shown}


def _drawn(findings: dict[str, Any]) -> dict[str, Any]:
    """What the scripts draw from; labels go column by column."""
    names = list(findings["support"])
    by_split, known = findings["support_by_split"], findings["known_share"]
    return {
        "labels": {
            "name": names,
            "support": list(findings["support"].values()),
            "known": [round(findings["images"] * known.get(name, 1.0)) for name in names],
            "splits": {split: [counts.get(name, 0) for name in names] for split, counts in by_split.items()},
        },
        "complete": not known,
        "per_image": [[int(k), n] for k, n in findings["labels_per_image_counts"].items()],
        "cooccurrence": {key: findings["cooccurrence"][key] for key in ("names", "counts")},
        "sizes": findings["image_sizes"]["most_frequent"],
    }


def _clean(value: Any, where: str) -> Any:
    """The same values with every text one that can be written to a file."""
    if isinstance(value, str):
        return text(value, where)
    if isinstance(value, Mapping):
        return {text(str(key), where): _clean(item, where) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item, where) for item in value]
    return value
