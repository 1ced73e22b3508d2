"""The command line: parse, call, print. Heavy libraries are imported inside the commands, so that --help is instant."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from manylabel.cli.bench import add_bench
from manylabel.cli.cache import cache_app
from manylabel.cli.common import DATA_HELP, Commands, DataFormat, Overwrite, Settings, data_section, refuse_set_too
from manylabel.cli.compare import compare
from manylabel.cli.data import data_app
from manylabel.cli.explain import explain
from manylabel.cli.export import export
from manylabel.cli.hard import hard
from manylabel.cli.lists import backbones, detectors, heads, losses, recipes, settings, texts
from manylabel.cli.predict import predict
from manylabel.core.train_extra import needs_train
from manylabel.error import ManylabelError
from manylabel.runtime.system_error import is_of_the_system, is_out_of_memory, sentence
from manylabel.runtime.terminal import echo, guard_streams
from manylabel.storage.output import check_apart, check_output, check_outputs

HELP = """Recognise everything in an image at once.

\b
  manylabel demo                                             the whole path on embedded data
  manylabel train photos/ --out runs/mine                    photos/labels.csv: file_name,labels
  manylabel evaluate runs/mine --data photos/ --split val
  manylabel predict runs/mine holiday.jpg --json
  manylabel explain runs/mine holiday.jpg                    where in the photo it sees what
  manylabel export runs/mine --out mine.onnx                 a file that predicts without torch
  manylabel compare runs/mine runs/other
  manylabel hard runs/mine                                   what it misses beside what it finds
"""

app = typer.Typer(
    cls=Commands,
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")
add_bench(app)
app.add_typer(cache_app, name="cache")


def _version(asked: bool) -> None:
    if asked:
        from manylabel import __version__

        echo(f"manylabel {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="no progress, only results and errors")] = False,
) -> None:
    from manylabel import console

    console.QUIET = quiet


@app.command()
def train(
    data: Annotated[str | None, typer.Argument(help=DATA_HELP, show_default=False)] = None,
    out: Annotated[Path, typer.Option(help="folder of the run")] = Path("runs/latest"),
    recipe: Annotated[
        str | None, typer.Option(help="a recipe by name (see 'manylabel recipes'), or a YAML file; default: laptop")
    ] = None,
    transfer: Annotated[
        str | None, typer.Option(help="lp, rm, partial or ft: how much of the backbone is trained (docs/transfer.md)")
    ] = None,
    head: Annotated[
        str | None, typer.Option(help="see 'manylabel heads'; without --recipe, settings that suit it are used")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="multi_label (any number of labels), single_label (one) or detection (boxes)")
    ] = None,
    task: Annotated[str | None, typer.Option(hidden=True)] = None,
    backbone: Annotated[str | None, typer.Option(help="see 'manylabel backbones'")] = None,
    frozen: Annotated[bool, typer.Option("--frozen", help="train the head only")] = False,
    partial: Annotated[bool, typer.Option("--partial", help="train the head and the backbone's last layers")] = False,
    full: Annotated[bool, typer.Option("--full", help="train everything")] = False,
    epochs: Annotated[int | None, typer.Option(help="passes over the training images", min=1)] = None,
    seed: Annotated[int | None, typer.Option(help="same seed, same weights")] = None,
    data_format: DataFormat = None,
    settings: Settings = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the run in --out")] = False,
) -> None:
    """Train, judge and bundle a classifier.

    \b
    manylabel train photos/ --out runs/mine
    manylabel train photos/labels.csv --backbone efficientnet_lite2 --full --epochs 20 --out runs/full
    manylabel train photos/ --head ml_decoder --out runs/attention
    manylabel train photos/ --transfer rm --head hsq --out runs/mixed
    manylabel train animals/ --kind single_label --out runs/one
    manylabel train scenes --set loss.name=asl --set train.ema=0.999 --out runs/try
    manylabel train --recipe adamv-moe-scenes --out runs/several
    manylabel train --resume --out runs/mine
    """
    chosen = [name for name, flag in (("frozen", frozen), ("partial", partial), ("full", full)) if flag]
    if task is not None:
        raise ManylabelError(f"--task names one task of a model; what a task is says --kind: --kind {task}")
    if resume and overwrite:
        raise ManylabelError("--resume and --overwrite exclude each other; choose one")
    if len(chosen) > 1:
        raise ManylabelError(f"--{' and --'.join(chosen)} exclude each other; choose one")
    if transfer and chosen:
        raise ManylabelError(f"--transfer {transfer} says by itself what is trained; leave --{chosen[0]} out")
    if data is None and recipe is None and not resume:
        raise ManylabelError(
            "no data given; name a label file or a folder that holds one, e.g. manylabel train photos/"
        )
    asked = {
        "--head": ("head.name", head),
        "--kind": ("kind", kind),
        "--backbone": ("backbone.name", backbone),
        **{f"--{name}": ("backbone.freeze", name) for name in chosen},
        "--epochs": ("train.epochs", epochs),
        "--seed": ("train.seed", seed),
    }
    refuse_set_too(settings, {option: key for option, (key, value) in asked.items() if value is not None})
    sections: dict[str, Any] = {}
    if head:
        sections["head"] = {"name": head}
    if kind:
        sections["kind"] = kind
    if backbone:
        sections["backbone"] = {"name": backbone}
    if chosen:
        sections.setdefault("backbone", {})["freeze"] = chosen[0]
    if epochs is not None:
        sections["train"] = {"epochs": epochs}
    if seed is not None:
        sections.setdefault("train", {})["seed"] = seed
    from manylabel import run

    result = run.train(
        data_section(data, data_format, settings) or None,
        out=out,
        recipe=recipe,
        transfer=transfer,
        settings=settings or [],
        resume=resume,
        overwrite=overwrite,
        **sections,
    )
    _print(result.results)
    echo(f"report: {out / 'report.html'}\nuse it: manylabel predict {out} IMAGE…")


def _print(results: dict[str, Any]) -> None:
    """Of one task, or of several."""
    from manylabel.printing import print_figures
    from manylabel.printing_tasks import print_tasks

    print_tasks(results) if "tasks" in results else print_figures(results)


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="folder of a run or a bundle, or a file that 'manylabel export' wrote")],
    data: Annotated[str | None, typer.Option(help=f"{DATA_HELP}; default: what it was trained on")] = None,
    split: Annotated[str | None, typer.Option(help="train, val or test; default: val where there is one")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="write results.json here")] = None,
    report_file: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="write a report here")] = None,
    task: Annotated[str | None, typer.Option(help="of a model with several tasks: only this one")] = None,
    allow_trained: Annotated[
        bool, typer.Option("--allow-trained", help="images that the run was trained on are no failure")
    ] = False,
    data_format: DataFormat = None,
    settings: Settings = None,
    overwrite: Overwrite = False,
) -> None:
    """Judge a trained model, from the pixels on.

    Where the run was trained on some of these images, that is said first, and the exit code is 1 unless
    --allow-trained is given or --split train asks for them; figures are written all the same.

    \b
    manylabel evaluate runs/mine
    manylabel evaluate runs/mine --data photos/ --split test --json test.json --report test.html
    manylabel evaluate mine.onnx --data photos/
    """
    import manylabel
    from manylabel.inference.evaluate_file import evaluate_file
    from manylabel.storage.atomic import write_json

    check_output(json_file, overwrite)
    check_output(report_file, overwrite)
    check_apart({"--json": json_file, "--report": report_file})
    asked = [f"data.format={data_format}"] if data_format else []
    refuse_set_too(settings, {"--format": "data.format"} if data_format else {})
    _check_pictures(run, report_file, overwrite)
    evaluated = evaluate_file if run.is_file() else manylabel.evaluate
    results, extra = evaluated(run, data=data, task=task, split=split, settings=[*asked, *(settings or [])])
    _print(results)
    if json_file:
        write_json(json_file, results)
    if report_file:
        _write_report(results, extra, report_file)
    judged = list(results["tasks"].values()) if "tasks" in results else [results]
    _end_evaluation(judged, allow_trained or split == "train")


def _write_report(results: dict[str, Any], details: dict[str, Any], path: Path) -> None:
    from manylabel.report import write_report
    from manylabel.report.tasks_page import write_tasks_report

    write_tasks_report(results, [], path) if "tasks" in results else write_report(results, details, path)


def _check_pictures(run: Path, report: Path | None, overwrite: bool) -> None:
    """A page of several tasks has its figures in a folder beside it, too."""
    from manylabel.report.tasks_file import has_tasks

    if report is not None and has_tasks(run):
        check_outputs(report.parent / "figures", ("[0-9][0-9]-*.png",), overwrite)


def _end_evaluation(judged: list[dict[str, Any]], allowed: bool) -> None:
    """Scripts that take figures for those of new images must fail where they are not."""
    if not allowed and any(results["trained_images"] for results in judged):
        raise typer.Exit(1)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="folder with results.json (a run)")],
    out: Annotated[Path | None, typer.Option(help="file to write; default: report.html in that folder")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Make the HTML report of a run again from its results.json; that of the run itself is replaced."""
    own = out is None or out.absolute() == (run / "report.html").absolute()
    check_output(run / "report.html" if own else out, overwrite or own)
    from manylabel.report import report_from_files
    from manylabel.report.tasks_file import has_tasks
    from manylabel.report.tasks_page import report_from_run

    if has_tasks(run):
        _check_pictures(run, out or run / "report.html", overwrite or own)
        echo(report_from_run(run, None if own else out))
    else:
        echo(report_from_files(run, out))


app.command()(compare)
app.command()(explain)
app.command()(export)
app.command()(hard)
app.command()(predict)
for listed in (heads, losses, detectors, texts, backbones, recipes, settings):
    app.command()(listed)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="folder of the run")] = Path("runs/demo"),
    settings: Settings = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the run in --out")] = False,
) -> None:
    """The whole path on embedded data: train, judge, report. A few minutes on two cores."""
    from manylabel import run
    from manylabel.printing import print_figures

    result = run.train(None, out=out, recipe="demo", settings=settings or [], overwrite=overwrite)
    print_figures(result.results)
    echo(f"report: {out / 'report.html'}")


def main() -> None:
    """Entry point: our own errors become one clear message and an exit code, without a traceback."""
    guard_streams()
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # when all is done, a Ctrl-C has nothing to stop
    try:
        try:
            with needs_train("this command"):
                app(standalone_mode=True)
        finally:
            sys.stdout.flush()  # here, where a full disk can still be said
    except ManylabelError as error:
        asked = getattr(error, "exit_code", None)  # a stop that somebody asked for is no error
        _fail(f"{'' if asked else 'error: '}{error}", "yellow" if asked else "red")
        sys.exit(asked or 2)
    except OSError as error:
        if not is_of_the_system(error):
            raise
        _fail(f"error: {sentence(error)}", "red")
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        _fail("error: the memory does not suffice; ask for less: smaller batches or images, a smaller model", "red")
        sys.exit(2)
    except KeyboardInterrupt:
        _fail("stopped", "red")
        os._exit(130)


def _fail(text: str, style: str) -> None:
    from manylabel.console import console

    console.print(text, style=style, soft_wrap=True)
