"""manylabel hard: which labels a run misses beside others that it finds, and what they have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manylabel.cli.common import Overwrite, refuse_given
from manylabel.error import ManylabelError
from manylabel.runtime.terminal import echo
from manylabel.storage.json_text import to_json
from manylabel.storage.output import check_output, check_outputs

FEWEST = 100  # draws: the ends of a 95 % interval need some beyond them


def hard(
    ctx: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="folder of a finished run")],
    second: Annotated[
        Path | None, typer.Argument(metavar="RUN2", help="another run on the same images, to compare with the first")
    ] = None,
    task: Annotated[str | None, typer.Option(help="of runs with several tasks: which one")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="list the images of this label, e.g. banana; may be repeated")
    ] = None,
    top: Annotated[int, typer.Option(help="rows of each table and images of each list", min=1)] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="everything as JSON on standard output")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="all labels as CSV on standard output")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="write a page with pictures here")] = None,
    out: Annotated[Path | None, typer.Option(help="folder for hard.html, its figures, JSON and CSV")] = None,
    hard_cost: Annotated[
        float,
        typer.Option(help="a missed label is hard if this share of the images without it scores as high", min=0, max=1),
    ] = 0.05,
    easy_cost: Annotated[
        float, typer.Option(help="a found label is easy if at most this share does", min=0, max=1)
    ] = 0.01,
    resamples: Annotated[int, typer.Option(help="draws of the images for intervals; 0 = no intervals", min=0)] = 1000,
    overwrite: Overwrite = False,
) -> None:
    """Hard instances: labels that are missed in images whose other labels are easy.

    Says which labels have most of them, whether that goes with average precision, training images or object size
    (where the data has boxes), and average precision by object size. With a second run: how many of them it finds, in which
    images and by which maps, the differences by size and label with 95 % intervals, whether the same labels are hard for
    both, and, where it mixes earlier stages, whether its alpha tells what the first finds hard.

    \b
    manylabel hard runs/mine
    manylabel hard runs/mine --label banana --label toaster --html hard.html
    manylabel hard runs/linear runs/mixup --out runs/linear-and-mixup
    manylabel hard runs/mine --csv > labels.csv
    """
    if as_json and as_csv:
        raise ManylabelError("--json and --csv exclude each other; choose one")
    if as_csv and out is None and html is None:
        refuse_given(ctx, ("top", "label"), "--csv writes all labels and no images; leave it out")
    if 0 < resamples < FEWEST:
        raise ManylabelError(f"--resamples {resamples}: intervals need {FEWEST} draws or more; 0 = no intervals")
    if easy_cost >= hard_cost:
        raise ManylabelError(f"--easy-cost {easy_cost:g} must be below --hard-cost {hard_cost:g}")
    if second is not None and second.resolve() == run.resolve():
        raise ManylabelError(f"{run} was given twice; name another run, or only one")
    check_output(html, overwrite)
    if out:
        check_outputs(out, ("hard.html", "hard.json", "labels.csv", "figures/[0-9][0-9]-*.png"), overwrite)

    from manylabel.compare import read_run
    from manylabel.hard_runs import study_runs
    from manylabel.hard_runs.files import write_hard_files, write_hard_html
    from manylabel.hard_runs.label_file import label_csv
    from manylabel.hard_runs.maps import draw_maps
    from manylabel.printing_hard import print_hard

    first, other = read_run(run, task=task), read_run(second, task=task) if second else None
    found, data = study_runs(
        first,
        other,
        labels=label or [],
        top=top,
        hard=hard_cost,
        easy=easy_cost,
        resamples=resamples,
    )
    maps = draw_maps(found, data, first, other) if out or html else {}
    if out:
        write_hard_files(found, data, out, maps)
    if html:
        write_hard_html(found, data, html, maps)
    if as_json:
        echo(to_json(found))
    elif as_csv:
        echo(label_csv(found), nl=False)
    else:
        print_hard(found, top, bool(label))
    for page in (out / "hard.html" if out else None, html):
        if page:
            echo(f"page: {page}", err=as_json or as_csv)
