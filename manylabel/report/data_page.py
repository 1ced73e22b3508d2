"""Findings about data (`manylabel data check`) → one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

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


class Picture(TypedDict):
    """Of the pictures that are suspicious."""

    kind: str


class Suspicious(TypedDict):
    images: list[Picture]


class Company(TypedDict):
    names: list[str]
    counts: list[list[int]]


class Sizes(TypedDict):
    most_frequent: list[list[int]]


class Count(TypedDict):
    count: int


class Groups(TypedDict):
    group_count: int


class Findings(TypedDict):
    """What is looked into here; the template shows the rest."""

    images: int
    labels_per_image_counts: dict[str, int]
    support: dict[str, int]
    support_by_split: dict[str, dict[str, int]]
    known_share: dict[str, float]
    cooccurrence: Company
    similar_names: list[object]
    image_sizes: Sizes
    wrong_sizes: Count
    unreadable: dict[str, str]
    suspicious: Suspicious
    duplicates: Groups
    leaks: Count
    contradictions: Count
    pictures: NotRequired[dict[str, object]]


class DrawnLabels(TypedDict):
    """Column by column."""

    name: list[str]
    support: list[int]
    known: list[int]
    splits: dict[str, list[int]]


class Drawn(TypedDict):
    """What the scripts draw from."""

    labels: DrawnLabels
    complete: bool
    per_image: list[list[int]]
    cooccurrence: Company
    sizes: list[list[int]]


def write_data_page(findings: Mapping[str, Any], out: Path) -> Path:
    """The page for these findings in the file `out`.

    `findings` is what `data check --json` writes; with a key `pictures` (image → data URI) the images are shown as well.
    """
    missing = [key for key in NEEDED if key not in findings]
    if missing:
        raise DataError(f"the findings lack {', '.join(missing)}; check the data again to write them anew")
    write_text(Path(out), _render(_clean(dict(findings), "findings")))
    return Path(out)


def _render(findings: Findings) -> str:
    pictures = {
        key: uri
        for key, uri in findings.get("pictures", {}).items()
        if isinstance(uri, str) and THUMBNAIL.fullmatch(uri)
    }
    by_kind: dict[str, list[Picture]] = {}
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


def _sections(findings: Findings) -> dict[str, str]:
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


def _drawn(findings: Findings) -> Drawn:
    names = list(findings["support"])
    by_split, known, company = findings["support_by_split"], findings["known_share"], findings["cooccurrence"]
    return {
        "labels": {
            "name": names,
            "support": list(findings["support"].values()),
            "known": [round(findings["images"] * known.get(name, 1.0)) for name in names],
            "splits": {split: [counts.get(name, 0) for name in names] for split, counts in by_split.items()},
        },
        "complete": not known,
        "per_image": [[int(k), n] for k, n in findings["labels_per_image_counts"].items()],
        "cooccurrence": {"names": company["names"], "counts": company["counts"]},
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
