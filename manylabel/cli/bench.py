"""manylabel bench …: ours and a peer in the same process, interleaved, on the same inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manylabel.cli.common import Commands
from manylabel.error import ConfigError

bench_app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure ours and a peer in the same process, on the same inputs (ratio > 1: ours is better).",
)
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="write the rows here")]
Quick = Annotated[bool, typer.Option("--quick", help="smaller inputs, for a first look")]


def _measure(name: str, quick: bool, json_file: Path | None) -> None:
    from manylabel.bench import run_bench
    from manylabel.bench.table import print_table, write_json

    rows = run_bench(name, quick)
    print_table(rows)
    if json_file:
        write_json(rows, json_file)


@bench_app.command()
def metrics(json_file: Json = None, quick: Quick = False) -> None:
    """Average precision against torchmetrics and scikit-learn."""
    _measure("metrics", quick, json_file)


@bench_app.command()
def loader(json_file: Json = None, quick: Quick = False) -> None:
    """JPEG files to batches against torchvision's ImageFolder."""
    _measure("loader", quick, json_file)


@bench_app.command()
def split(json_file: Json = None, quick: Quick = False) -> None:
    """Stratified splits against iterative-stratification."""
    _measure("split", quick, json_file)


@bench_app.command()
def heads(json_file: Json = None, quick: Quick = False) -> None:
    """ML-Decoder against timm's, and how heads grow with the number of labels."""
    _measure("heads", quick, json_file)


@bench_app.command()
def cost(
    backbone: Annotated[list[str] | None, typer.Option(help="any backbone; may be repeated")] = None,
    head: Annotated[list[str] | None, typer.Option(help="any head; may be repeated")] = None,
    labels: Annotated[list[int] | None, typer.Option(help="number of labels; may be repeated", min=1)] = None,
    image_size: Annotated[list[int] | None, typer.Option(help="pixels; may be repeated", min=16)] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="an option of the heads, e.g. head.groups=100"),
    ] = None,
    json_file: Json = None,
) -> None:
    """Parameters and multiply-adds of any backbone × head × labels × resolution; alone: the ML-Decoder paper's tables.

    \b
    manylabel bench cost
    manylabel bench cost --backbone resnet50 --head linear --head ml_decoder --labels 80 --labels 9605
    manylabel bench cost --backbone tresnet_l --head ml_decoder --set head.groups=20 --image-size 448 --json cost.json
    """
    from manylabel.bench.cost import chosen_rows, other_rows, paper_rows, print_costs, write_costs
    from manylabel.config import override

    if any((backbone, head, labels, image_size, settings)):
        asked = override({}, settings or [])
        if set(asked) - {"head"}:
            raise ConfigError(
                f"bench cost takes options of heads only (head.…), not {sorted(set(asked) - {'head'})[0]!r}"
            )
        rows = chosen_rows(
            backbone or ["efficientnet_lite0"],
            head or ["linear", "ml_decoder", "query2label"],
            labels or [80],
            image_size or [224],
            asked.get("head", {}),
        )
        print_costs(rows)
    else:
        compared, others = paper_rows(), other_rows()
        print_costs(compared)
        print_costs(others)
        rows = compared + others
    if json_file:
        write_costs(rows, json_file)
