"""What `manylabel hard` prints."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from manylabel.core.comparison import Interval
from manylabel.core.hard_findings import HardFindings, LabelImages, RankCorrelation, SecondRun, SizeRow
from manylabel.runtime.rich_console import Terminal

SHOWN_IMAGES = 5


def print_hard(found: HardFindings, top: int, asked: bool) -> None:
    """`asked`: somebody named labels, so their images are listed."""
    out = Terminal()
    data, pairs, hard = found["data"], found["pairs"], found["hard_pairs"]
    out.print(
        f"{found['run']} on {data['name']} {data['split']}: {hard} of {pairs} present labels are hard "
        f"({_share(hard / pairs if pairs else None)}), in {found['hard_images']} of {found['images']} images",
        markup=False,
        soft_wrap=True,
    )
    out.print(f"hard: {found['definition']}", soft_wrap=True, style="dim")
    _labels(out, found, top)
    _ends(out, found)
    if found["correlations"]:
        _correlations(out, found["correlations"])
    if found["sizes"]:
        _sizes(out, found["sizes"]["rows"])
    if any("alpha" in row for row in found["labels"]):
        _alphas(out, found, top)
    _images(out, found, min(top, SHOWN_IMAGES))
    if asked:
        for label in found["pictured"]:
            _label_images(out, label)
    if found["second"]:
        _second(out, found["second"], top)
    for note in [*found["notes"], *(found["second"]["notes"] if found["second"] else ())]:
        out.print(f"  · {note}", soft_wrap=True)


def _labels(out: Terminal, found: HardFindings, top: int) -> None:
    rows = found["labels"][:top]
    title = f"labels with the largest share of hard instances, {len(rows)} of {len(found['labels'])}"
    table = _table(title, "label", "images", "hard", "share", "AP", "training", "object size")
    for row in rows:
        table.add_row(
            Text(row["name"]),
            str(row["support"]),
            str(row["hard"]),
            _share(row["share"]),
            _number(row["ap"], ".1f"),
            _number(row["train"], "d"),
            _share(row["size"]),
        )
    out.print(table)


def _ends(out: Terminal, found: HardFindings) -> None:
    for rows, words in ((found["best"], "best tenth by AP"), (found["worst"], "worst tenth by AP")):
        if rows:
            names = ", ".join(f"{row['name']} {row['ap']:.1f} ({row['support']})" for row in rows)
            out.print(f"{words} (images): {names}", soft_wrap=True)


def _correlations(out: Terminal, rows: list[RankCorrelation]) -> None:
    table = _table("what goes together: Spearman's rank correlation", "", "entries", "rho", "95 %")
    for row in rows:
        table.add_row(Text(row["name"]), str(row["labels"]), _number(row["rho"], "+.2f"), _between(row, "+.2f"))
    out.print(table)


def _sizes(out: Terminal, rows: list[SizeRow]) -> None:
    table = _table(
        "by the label's largest object", "size", "of the image", "pairs", "hard", "share", "95 %", "mAP", "labels"
    )
    for row in rows:
        ends = (
            "–" if row["low"] is None or row["high"] is None else f"{100 * row['low']:.1f} … {100 * row['high']:.1f} %"
        )
        table.add_row(
            row["name"],
            row["area"],
            str(row["pairs"]),
            str(row["hard"]),
            _share(row["share"]),
            ends,
            _number(row["mAP"], ".1f"),
            str(row["labels_scored"]),
        )
    out.print(table)


def _alphas(out: Terminal, found: HardFindings, top: int) -> None:
    rows = sorted((row for row in found["labels"] if "alpha" in row), key=lambda row: -row["alpha"])[:top]
    table = _table("labels that take most from earlier stages", "label", "alpha", "AP", "hard share")
    for row in rows:
        table.add_row(Text(row["name"]), f"{row['alpha']:.3g}", _number(row["ap"], ".1f"), _share(row["share"]))
    out.print(table)


def _images(out: Terminal, found: HardFindings, most: int) -> None:
    if found["images_shown"]:
        out.print("hardest images (hard labels with !, easy ones with +):")
    for image in found["images_shown"][:most]:
        marks = {"hard": "!", "easy": "+", "found": "", "missed": ""}
        labels = ", ".join(f"{marks[label['state']]}{label['label']} {label['score']:.2f}" for label in image["labels"])
        out.print(f"  {image['file']}: {labels}", soft_wrap=True)


def _label_images(out: Terminal, label: LabelImages) -> None:
    for which, rows in (("smallest", label["smallest"]), ("largest", label["largest"])):
        if rows:
            title = f"{label['label']}: the {which} scores of {label['images']} images with it"
            table = _table(title, "image", "score", "cost", "is", "object size")
            for row in rows:
                cells = (f"{row['score']:.3f}", _share(row["cost"]), row["state"], _share(row["size"]))
                table.add_row(Text(row["file"]), *cells)
            out.print(table)


def _second(out: Terminal, second: SecondRun, top: int) -> None:
    first, other = second["names"]
    mean = second["mAP"]
    out.print(
        f"{other} against {first}: mAP {_number(mean['change'], '+.2f')} ({_between(mean, '+.2f')}), "
        f"{second['better']} labels better ({second['surely_better']} surely), "
        f"{second['worse']} worse ({second['surely_worse']} surely)",
        markup=False,
        soft_wrap=True,
    )
    for got, mine, its in ((second["hard_of_first"], first, other), (second["hard_of_second"], other, first)):
        out.print(
            f"  of the {got['hard']} hard instances of {mine}, {its} finds {got['found']} ({got['easy']} of them easy); "
            f"{got['still_hard']} are hard for it too",
            markup=False,
            soft_wrap=True,
        )
    table = _table("at score 0.5", "run", *(row["name"] for row in second["figures"]))
    for name, key in ((first, "first"), (other, "second")):
        table.add_row(Text(name), *(f"{row[key]:.1f}" for row in second["figures"]))  # type: ignore[literal-required]
    out.print(table)
    both = second["agreement"]
    shared = f": {', '.join(both['shared'])}" if both["shared"] else ""
    out.print(
        f"of the {both['worst']} worst labels of either run {len(both['shared'])} are the same "
        f"({both['by_chance']:.1f} by chance){shared}",
        markup=False,
        soft_wrap=True,
    )
    _correlations(out, [*both["ranks"], *second["correlations"]])
    if second["alphas"]:
        table = _table(f"labels by alpha of {other}", "label", "alpha", f"AP of {first}", "place from below")
        for label in second["alphas"][:top]:
            table.add_row(
                Text(label["name"]), f"{label['alpha']:.3g}", _number(label["ap"], ".1f"), str(label["place"] or "–")
            )
        out.print(table)
    if second["found"]:
        out.print(f"missed by {first}, found by {other}:", markup=False, soft_wrap=True)
    for one in second["found"]:
        alpha = "" if one["alpha"] is None else f", alpha {one['alpha']:.3g}"
        out.print(
            f"  {one['file']}: {one['label']} {one['first']:.2f} → {one['second']:.2f}{alpha}",
            markup=False,
            soft_wrap=True,
        )
    if second["sizes"]:
        table = _table("mAP by object size", "size", "labels", "positives", "first", "second", "change", "95 %")
        for row in second["sizes"]:
            table.add_row(
                row["name"],
                str(row["labels_scored"]),
                str(row["positives"]),
                _number(row["first"], ".2f"),
                _number(row["second"], ".2f"),
                _number(row["change"], "+.2f"),
                _between(row, "+.2f"),
            )
        out.print(table)
    title = f"AP of labels, worst of the first run first, {min(top, len(second['labels']))} of {len(second['labels'])}"
    table = _table(title, "label", "images", "first", "second", "change", "95 %")
    for each in second["labels"][:top]:
        table.add_row(
            Text(each["name"]),
            str(each["support"]),
            _number(each["first"], ".2f"),
            _number(each["second"], ".2f"),
            _number(each["change"], "+.2f"),
            _between(each, "+.2f"),
        )
    out.print(table)


def _between(row: Interval, form: str) -> str:
    return "–" if row["low"] is None else f"{row['low']:{form}} … {row['high']:{form}}"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _table(title: str, first: str, *numbers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", padding=(0, 1, 0, 0))
    table.add_column(first, overflow="fold", min_width=10)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
