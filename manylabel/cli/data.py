"""manylabel data …: look at data, fetch it, split it, convert it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from manylabel.cli.common import Commands, DataFormat, DataPath, Overwrite, Settings, data_section, refuse_given
from manylabel.error import ManylabelError
from manylabel.runtime.terminal import echo
from manylabel.storage.output import check_apart, check_output

data_app = typer.Typer(
    cls=Commands,
    help="Look at data before training on it; fetch, split and convert it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _table(path: str, data_format: str | None, settings: list[str] | None) -> tuple[Any, Any]:
    from manylabel.config import make_config
    from manylabel.data.read import read_table

    config = make_config(None, settings or [], data=data_section(path, data_format, settings)).only.data
    return read_table(config), config


@data_app.command()
def check(
    path: DataPath,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="write the findings here")] = None,
    page: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="write a page with plots here")] = None,
    data_format: DataFormat = None,
    settings: Settings = None,
    overwrite: Overwrite = False,
) -> None:
    """Look at labels and images; the exit code is 0 when a model can be trained on them.

    \b
    manylabel data check photos/
    manylabel data check photos/ --html photos.html --json photos.json
    """
    from manylabel import console
    from manylabel.data.audit import audit, pictures
    from manylabel.printing_audit import print_audit
    from manylabel.report import write_data_page
    from manylabel.storage.atomic import write_json

    check_output(json_file, overwrite)
    check_output(page, overwrite)
    check_apart({"--json": json_file, "--html": page})
    table, config = _table(path, data_format, settings)
    with console.counting("looking at images", len(table)) as advance:
        findings = audit(table, max_bad_share=config.max_bad_share, workers=config.workers, advance=advance)
    print_audit(findings, table.notes)
    if json_file:
        write_json(json_file, findings.plain())
    if page:
        echo(f"page: {write_data_page({**findings.plain(), 'pictures': pictures(table, findings)}, page)}")
    if not findings.trainable:
        raise typer.Exit(1)


@data_app.command()
def formats() -> None:
    """List the formats that are read (by themselves or with --format) and written (with convert --to)."""
    from manylabel.data.read import FORMATS
    from manylabel.data.write import TARGETS

    for name in dict.fromkeys([*FORMATS, *TARGETS]):
        ways = " and ".join(way for way, known in (("read", FORMATS), ("written", TARGETS)) if name in known)
        title = FORMATS[name].title if name in FORMATS else TARGETS[name].title
        echo(f"{name:16} {title:44} {ways}")


@data_app.command()
def split(
    ctx: typer.Context,
    path: DataPath,
    out: Annotated[Path, typer.Option(help="CSV to write: file_name,split (or file_name,fold)")],
    val: Annotated[float, typer.Option(help="share to choose the model on", min=0, max=1)] = 0.2,
    test: Annotated[float, typer.Option(help="share to judge it on at the very end", min=0, max=1)] = 0.0,
    folds: Annotated[int | None, typer.Option(help="so many folds instead, for cross-validation", min=2)] = None,
    seed: Annotated[int, typer.Option(help="same seed, same split", min=0)] = 0,
    duplicates: Annotated[
        bool, typer.Option("--duplicates/--no-duplicates", help="keep near-duplicate images on one side")
    ] = True,
    data_format: DataFormat = None,
    overwrite: Overwrite = False,
    settings: Settings = None,
) -> None:
    """Split data so that every label is in every part in the same share; groups and near-duplicates stay together.

    \b
    manylabel data split photos/ --out photos/split.csv
    manylabel data split photos/ --val 0.1 --test 0.2 --seed 3 --out split.csv
    manylabel data split photos/ --folds 5 --out folds.csv
    manylabel train photos/ --set data.split_file=folds.csv --set data.fold=0
    """
    from manylabel import console
    from manylabel.data.audit import find_duplicates, inspect_table
    from manylabel.data.read.own_files import refuse_own
    from manylabel.data.read.split_file import write_split_file
    from manylabel.data.split import joined_groups, part_names_and_shares, split_table
    from manylabel.printing import print_split

    if folds is not None:
        refuse_given(ctx, ("val", "test"), "not with --folds, which are all of one size; leave it out")
    names, shares = part_names_and_shares(val, test, folds)
    check_output(out, overwrite)
    table, config = _table(path, data_format, settings)
    refuse_own([out], config)
    if table.split is not None:
        console.say(f"{table.name} has a split of its own; this one is made from all its images")
    alike = None
    if duplicates:
        with console.counting("looking for near-duplicates", len(table)) as advance:
            found = find_duplicates(inspect_table(table, workers=config.workers, advance=advance))
        alike = found.group
        if found.not_compared:
            console.warn(
                f"{found.not_compared} images look so much alike that they were not all compared with each other"
            )
    result = split_table(table, names, shares, seed, joined_groups(table.groups, alike))
    parts = dict(zip(table.keys.tolist(), result.parts.tolist(), strict=True))
    write_split_file(out, parts, "fold" if folds else "split")
    print_split(result)
    use = f"--set data.split_file={out}" + (" --set data.fold=0" if folds else "")
    echo(f"use it: manylabel train {path} {use}")


@data_app.command()
def convert(
    path: DataPath,
    out: Annotated[Path, typer.Argument(help="file or new folder to write")],
    to: Annotated[str, typer.Option("--to", help="format to write, see 'manylabel data formats'")],
    images: Annotated[
        str | None, typer.Option(help="leave the image files where they are, link or copy them; default: by format")
    ] = None,
    part: Annotated[str | None, typer.Option("--split", help="only train, val or test")] = None,
    data_format: DataFormat = None,
    overwrite: Overwrite = False,
    settings: Settings = None,
) -> None:
    """Write data in another format, a row at a time: a million rows need little memory.

    \b
    manylabel data convert VOC2012/ voc.json --to coco
    manylabel data convert annotations/instances_val2017.json labels.csv --to csv
    manylabel data convert photos/ hub/ --to imagefolder --images copy
    """
    from manylabel.config import make_config
    from manylabel.data.convert import convert as run_convert

    if images not in (None, "leave", "link", "copy"):
        raise ManylabelError(f"--images is leave, link or copy, not {images!r}")
    config = make_config(None, settings or [], data=data_section(path, data_format, settings)).only.data
    done = run_convert(config, out, to, images=images, split=part, overwrite=overwrite)  # type: ignore[arg-type]
    for note in done.notes:
        echo(f"  · {note}")
    echo(f"{done.images} images and {done.labels} labels are in {out}")


@data_app.command()
def fetch(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="which data set; without it, those that there are")] = None,
    out: Annotated[Path | None, typer.Option(help="new folder for it; default: data/NAME")] = None,
    labels: Annotated[list[str] | None, typer.Option("--label", help="openimages: a label to get images of")] = None,
    count: Annotated[int, typer.Option(help="openimages: images per label and split", min=1)] = 100,
    splits: Annotated[list[str] | None, typer.Option("--split", help="only this part of it")] = None,
    seed: Annotated[int, typer.Option(help="openimages: which images are chosen", min=0)] = 0,
    other_labels: Annotated[
        bool, typer.Option("--other-labels", help="openimages: keep what the images say about other labels, too")
    ] = False,
    mirror: Annotated[str | None, typer.Option(help="http(s) address that stands in for the official servers")] = None,
    keep_archives: Annotated[bool, typer.Option("--keep-archives", help="do not delete what was unpacked")] = False,
) -> None:
    """Bring a public data set from its official source; call it again to go on after an interruption.

    \b
    manylabel data fetch
    manylabel data fetch voc2007 --out data/voc2007
    manylabel data fetch openimages --label Tractor --label "Birthday cake" --count 50 --out data/farm
    """
    from manylabel.data.fetch import available
    from manylabel.data.fetch import fetch as run_fetch

    of_labels = ("count", "seed", "other_labels")
    if name is None:
        refuse_given(
            ctx, ("out", "labels", "splits", "mirror", "keep_archives", *of_labels), "name the data set to fetch, too"
        )
        for entry in available():
            echo(f"{entry.name:12} {entry.size / 1e9:6.1f} GB  {entry.about}\n{'':24}{entry.licence} ({entry.page})")
        return
    if any(entry.name == name and not entry.by_label for entry in available()):
        refuse_given(ctx, of_labels, f"for openimages only; {name} is fetched as a whole")
    folder = run_fetch(
        name,
        out or Path("data") / name,
        labels=labels or (),
        count=count,
        splits=splits,
        seed=seed,
        other_labels=other_labels,
        mirror=mirror,
        keep_archives=keep_archives,
    )
    echo(f"{name} is in {folder}\nlook at it: manylabel data check {folder}")
