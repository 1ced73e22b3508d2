"""From findings to advice: problems keep a model from being trained, warnings should be looked at first."""

from __future__ import annotations

from typing import Any

import numpy as np

from manylabel.data.audit.counts import Counts
from manylabel.data.audit.result import Audit
from manylabel.data.audit.suspicion import KINDS
from manylabel.data.table import Table

TOO_RARE_TO_SPLIT = 2
TOO_RARE_TO_JUDGE = 10


def judge(table: Table, counts: Counts, found: Audit, max_bad_share: float) -> tuple[list[str], list[str]]:
    """(problems, warnings), a sentence each."""
    problems, warnings = _about_labels(table, counts, found)
    splits = found.splits
    if splits and not splits.get("train"):
        problems.append("no image is in split 'train'")
    elif splits and not splits.get("val"):
        warnings.append(
            "no image is in split 'val': a part of the training images will be held out to choose the model on"
        )
    if (not splits and len(table) < 2) or (splits.get("train") == 1 and not splits.get("val")):
        problems.append("one image cannot be split into a part to learn from and a part to judge on")
    bad = len(found.unreadable)
    if bad > max_bad_share * len(table):
        problems.append(
            f"{_many(bad, 'image')} ({bad / len(table):.1%}) cannot be read, over the limit of {max_bad_share:.1%} "
            "(--set data.max_bad_share=…)"
        )
    elif bad:
        warnings.append(f"{_many(bad, 'image')} cannot be read and will be left out")
    return problems, [*_about_leaks(table, found), *_about_sizes(table, found), *warnings, *_about_images(found)]


def _about_labels(table: Table, counts: Counts, found: Audit) -> tuple[list[str], list[str]]:
    problems, warnings = [], []
    one_sided = int((counts.absent == 0).sum())
    if one_sided == len(table.labels):
        problems.append("no label is absent anywhere; if blank cells mean absent: --set data.blank=absent")
    elif one_sided:
        warnings.append(f"{_many(one_sided, 'label')} absent from no image: a model can only say yes there")
    if rare := found.too_rare_to_split:
        warnings.append(
            f"{_many(len(rare), 'label')} with fewer than {TOO_RARE_TO_SPLIT} images: that cannot be both learnt and judged"
        )
    warnings += _about_gaps(table, counts)
    if pairs := found.similar_names:
        some = ", ".join(f"{a!r} and {b!r}" for a, b in (pair["labels"] for pair in pairs[:3]))
        warnings.append(f"{_many(len(pairs), 'pair')} of label names may be one label written twice: {some}")
    if count := found.cooccurrence["identical_count"]:
        some = ", ".join(f"{a!r} and {b!r}" for a, b in found.cooccurrence["identical"][:3])
        warnings.append(f"{_many(count, 'pair')} of labels on exactly the same images: {some}")
    return problems, warnings


def _about_gaps(table: Table, counts: Counts) -> list[str]:
    """Labels that a split lacks while another has them. Without training images there is a problem, said elsewhere."""
    if "train" not in counts.by_split:
        return []
    train = counts.by_split["train"]
    gaps = {"training": (train == 0) & (counts.support > 0)}
    if "val" in counts.by_split:
        gaps["validation"] = (train > 0) & (counts.by_split["val"] == 0)
    missing = {what: [table.labels.names[i] for i in np.flatnonzero(gap)] for what, gap in gaps.items()}
    return [
        f"{_have(len(names), 'label')} no {what} image: {', '.join(names[:5])}"
        for what, names in missing.items()
        if names
    ]


def _about_leaks(table: Table, found: Audit) -> list[str]:
    warnings = []
    if count := found.leaks["count"]:
        where = ", ".join(f"{n} of {name}" for name, n in found.leaks["images"].items())
        warnings.append(
            f"{_many(count, 'pair')} of the same picture in different splits ({where}): "
            "figures will look better than they are"
        )
    if table.groups is not None and table.split is not None:
        places = np.unique(np.stack([table.groups.astype(str), table.split]), axis=1)  # [2, groups in splits]
        apart = int((np.unique(places[0][places[0] != ""], return_counts=True)[1] > 1).sum())
        if apart:
            warnings.append(f"{_many(apart, 'group')} with images in more than one split")
    return warnings


def _about_sizes(table: Table, found: Audit) -> list[str]:
    wrong = found.wrong_sizes
    warnings = []
    if count := wrong["count"] - wrong["turned"]:
        so = "boxes and masks will not fit" if table.objects is not None else "are these the images that were labelled?"
        warnings.append(f"{_have(count, 'image')} another size than the label file says ({_first(wrong, False)}): {so}")
    if wrong["turned"] and table.objects is not None:  # without boxes it does not matter
        warnings.append(
            f"{_have(wrong['turned'], 'image')} width and height swapped ({_first(wrong, True)}): "
            "boxes and masks are for the image before it was turned upright"
        )
    return warnings


def _first(wrong: dict[str, Any], turned: bool) -> str:
    entry = next(entry for entry in wrong["images"] if entry["turned"] == turned)
    (width, height), (told_width, told_height) = entry["found"], entry["told"]
    return f"first: {entry['image']} is {width}×{height}, not {told_width}×{told_height}"


def _about_images(found: Audit) -> list[str]:
    warnings = []
    copies = found.duplicates
    if copies["exact_copies"] or copies["near_copies"]:
        warnings.append(
            f"{copies['exact_copies']} exact and {copies['near_copies']} near copies of other images, in "
            f"{_many(copies['group_count'], 'group')}"
        )
    if copies["not_compared"]:
        warnings.append(
            f"{_many(copies['not_compared'], 'image')} not compared with all others, for too many look nearly the same"
        )
    if count := found.contradictions["count"]:
        first = found.contradictions["groups"][0]
        others = first["images"][1] if first["size"] == 2 else f"{first['size'] - 1:,} others"
        warnings.append(
            f"{_many(count, 'group')} of images that look alike, but have different labels "
            f"({found.contradictions['exact']:,} exact, {found.contradictions['near']:,} near): "
            f"{first['images'][0]} and {others} differ in {', '.join(first['labels'][:3])}"
        )
    if kinds := found.suspicious["kinds"]:
        what = ", ".join(f"{count} {KINDS[kind]}" for kind, count in kinds.items())
        warnings.append(f"{_many(sum(kinds.values()), 'suspicious image')}: {what}")
    if unlisted := found.unlisted["count"]:
        some = ", ".join(found.unlisted["first"][:3])
        verb = "is" if unlisted == 1 else "are"
        warnings.append(f"{_many(unlisted, 'image')} in the data folder {verb} in no label file: {some}")
    return warnings


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _have(count: int, what: str) -> str:
    return f"{_many(count, what)} {'has' if count == 1 else 'have'}"
