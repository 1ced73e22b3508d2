"""manylabel bench …: ours and a peer in the same process, interleaved, on the same inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from manylabel.cli.common import DATA_HELP, Commands, Overwrite, each_once
from manylabel.error import ConfigError
from manylabel.storage.output import check_output

bench_app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure ours and a peer in the same process, on the same inputs (ratio > 1: ours is better).",
)
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="write the rows here")]
Quick = Annotated[bool, typer.Option("--quick", help="smaller inputs, for a first look")]
HeadSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="an option of the heads, e.g. head.groups=100", callback=each_once),
]


def _head_options(command: str, settings: list[str] | None) -> dict[str, Any]:
    from manylabel.config import override

    asked = override({}, settings or [])
    other = sorted(set(asked) - {"head"})
    if other:
        raise ConfigError(f"bench {command} takes options of heads only (head.…), not {other[0]!r}")
    options: dict[str, Any] = asked.get("head", {})
    return options


def _neck(settings: list[str]) -> Any:
    from manylabel.config import Part, override

    asked = override({}, settings).get("neck", {})
    return Part(asked.pop("name", "rm"), asked) if settings else "none"


def _measure(name: str, quick: bool, json_file: Path | None, overwrite: bool) -> None:
    from benchmarks import run_bench
    from benchmarks.table import print_table, write_rows

    check_output(json_file, overwrite)
    rows = run_bench(name, quick)
    print_table(rows)
    if json_file:
        write_rows(rows, json_file)


@bench_app.command()
def metrics(json_file: Json = None, quick: Quick = False, overwrite: Overwrite = False) -> None:
    """Average precision against torchmetrics and scikit-learn."""
    _measure("metrics", quick, json_file, overwrite)


@bench_app.command()
def loader(json_file: Json = None, quick: Quick = False, overwrite: Overwrite = False) -> None:
    """JPEG files to batches against torchvision's ImageFolder."""
    _measure("loader", quick, json_file, overwrite)


@bench_app.command()
def split(json_file: Json = None, quick: Quick = False, overwrite: Overwrite = False) -> None:
    """Stratified splits against iterative-stratification."""
    _measure("split", quick, json_file, overwrite)


@bench_app.command()
def heads(json_file: Json = None, quick: Quick = False, overwrite: Overwrite = False) -> None:
    """ML-Decoder against timm's, and how heads grow with the number of labels."""
    _measure("heads", quick, json_file, overwrite)


@bench_app.command()
def hsq(json_file: Json = None, quick: Quick = False, overwrite: Overwrite = False) -> None:
    """HSQ's layer against Algorithm 1 in loops, and its memory."""
    _measure("hsq", quick, json_file, overwrite)


@bench_app.command()
def experts(json_file: Json = None, quick: Quick = False, overwrite: Overwrite = False) -> None:
    """Sparse experts: what more of them cost, what they save, and two peers."""
    _measure("experts", quick, json_file, overwrite)


@bench_app.command()
def extract(
    data: Annotated[str, typer.Argument(help=DATA_HELP)],
    images: Annotated[int, typer.Option(help="how many of its images", min=16)] = 1000,
    backbone: Annotated[str, typer.Option(help="any backbone")] = "efficientnet_lite0",
    workers: Annotated[int, typer.Option(help="processes that decode", min=0)] = 2,
    json_file: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Features of image files for the cache, against a plain eager loop over a timm model.

    \b
    manylabel bench extract photos/ --images 1000
    """
    from benchmarks.extract import run
    from benchmarks.table import print_table, write_rows

    check_output(json_file, overwrite)
    rows = run(data, images, backbone, workers)
    print_table(rows)
    if json_file:
        write_rows(rows, json_file)


@bench_app.command()
def speed(
    head: Annotated[list[str] | None, typer.Option(help="any head; may be repeated; ratios are to the first")] = None,
    labels: Annotated[list[int] | None, typer.Option(help="number of labels; may be repeated", min=1)] = None,
    batch: Annotated[int, typer.Option(help="images in a step", min=1)] = 32,
    settings: HeadSettings = None,
    json_file: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Time and memory of a step of any heads, from 80 to 10,000 labels.

    \b
    manylabel bench speed
    manylabel bench speed --head linear --head query2label --head hsq --labels 80 --set head.shared_experts=4
    """
    from benchmarks.speed import LABELS, USUAL, print_speeds, speeds
    from benchmarks.table import write_rows

    check_output(json_file, overwrite)
    rows = speeds(head or USUAL, labels or LABELS, _head_options("speed", settings), batch)
    print_speeds(rows, batch)
    if json_file:
        write_rows(rows, json_file)


@bench_app.command()
def cost(
    backbone: Annotated[list[str] | None, typer.Option(help="any backbone; may be repeated")] = None,
    head: Annotated[list[str] | None, typer.Option(help="any head; may be repeated")] = None,
    labels: Annotated[list[int] | None, typer.Option(help="number of labels; may be repeated", min=1)] = None,
    image_size: Annotated[list[int] | None, typer.Option(help="pixels; may be repeated", min=16)] = None,
    table: Annotated[
        list[str] | None, typer.Option(help="only this table of the papers, e.g. A.2; may be repeated")
    ] = None,
    settings: HeadSettings = None,
    json_file: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Parameters and multiply-adds of any backbone × head × labels × resolution; alone: the papers' tables.

    \b
    manylabel bench cost
    manylabel bench cost --table A.2
    manylabel bench cost --backbone resnetv2_50x3_bit --head linear --image-size 448 --set neck.name=rm --set neck.stages=rm1
    manylabel bench cost --backbone resnet50 --head linear --head ml_decoder --labels 80 --labels 9605
    manylabel bench cost --backbone tresnet_l --head ml_decoder --set head.groups=20 --image-size 448 --json cost.json
    """
    from benchmarks.cost import chosen_rows, other_rows, print_costs, rows_of_tables
    from benchmarks.table import write_rows

    check_output(json_file, overwrite)
    chosen = any((backbone, head, labels, image_size, settings))
    if chosen and table:
        raise ConfigError("--table is a table of the papers, with backbones and heads of its own: leave the others out")
    if chosen:
        rows = chosen_rows(
            backbone or ["efficientnet_lite0"],
            head or ["linear", "ml_decoder", "query2label"],
            labels or [80],
            image_size or [224],
            _head_options("cost", [one for one in settings or [] if not one.startswith("neck.")]),
            _neck([one for one in settings or [] if one.startswith("neck.")]),
        )
        print_costs(rows)
    else:
        rows = []
        for part in rows_of_tables(table) if table else [*rows_of_tables(), other_rows()]:
            print_costs(part)
            rows += part
    if json_file:
        write_rows(rows, json_file)


@bench_app.command()
def explain(
    run: Annotated[Path, typer.Argument(help="folder of a run or a bundle")],
    data: Annotated[str, typer.Option(help="data with boxes, or 'scenes'")],
    images: Annotated[int, typer.Option(help="at most so many images", min=1)] = 300,
    split: Annotated[str | None, typer.Option(help="train, val or test; default: val where there is one")] = None,
    stage: Annotated[list[str] | None, typer.Option(help="only this stage; may be repeated; default: all")] = None,
    json_file: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Which explanation points best at the boxes of a label: every method at every stage, beside chance.

    Pointing game: how often the highest place of a map lies in a box of its label. Energy: share of the map in the boxes.

    \b
    manylabel bench explain runs/voc --data voc12/ --images 300
    manylabel bench explain runs/demo --data scenes --stage final --stage stage5 --json explain.json
    """
    from benchmarks.explain import measure, print_rows
    from benchmarks.table import write_rows
    from manylabel.data.read import load_data
    from manylabel.explain import Explainer
    from manylabel.inference.predictor import Predictor

    check_output(json_file, overwrite)
    predictor = Explainer(Predictor.load(run)).predictor
    table = load_data(data)
    chosen = split or ("val" if table.split is not None and "val" in table.split else None)
    if chosen is not None:
        table = table.subset(table.rows(chosen))
    rows = measure(predictor, table.with_labels(predictor.bundle.labels, predictor.bundle.hierarchy), images, stage)
    print_rows(rows)
    if json_file:
        write_rows(rows, json_file)
