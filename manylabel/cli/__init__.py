"""The command line: parse, call, print. Heavy libraries are imported inside the commands, so that --help is instant."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from manylabel.cli.bench import bench_app
from manylabel.cli.cache import cache_app
from manylabel.cli.common import DATA_HELP, Commands, DataFormat, Overwrite, Settings, data_section, refuse_set_too
from manylabel.cli.compare import compare
from manylabel.cli.data import data_app
from manylabel.cli.explain import explain
from manylabel.cli.hard import hard
from manylabel.cli.lists import backbones, detectors, heads, losses, recipes, settings, texts
from manylabel.cli.multitask import (
    evaluate_several,
    predict_several,
    refuse,
    report_several,
    train_several,
)
from manylabel.error import ManylabelError
from manylabel.runtime.printable import in_one_line
from manylabel.runtime.system_error import is_of_the_system, is_out_of_memory, sentence
from manylabel.runtime.terminal import echo, guard_streams
from manylabel.several_tasks import model_has_tasks, run_names_tasks
from manylabel.storage.json_text import to_json
from manylabel.storage.output import check_apart, check_output

HELP = """Recognise everything in an image at once.

\b
  manylabel demo                                             the whole path on embedded data
  manylabel train photos/ --out runs/mine                    photos/labels.csv: file_name,labels
  manylabel evaluate runs/mine --data photos/ --split val
  manylabel predict runs/mine holiday.jpg --json
  manylabel explain runs/mine holiday.jpg                    where in the photo it sees what
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
app.add_typer(bench_app, name="bench")
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
    task: Annotated[str | None, typer.Option(help="multi_label (any number of labels) or single_label (one)")] = None,
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
    manylabel train animals/ --task single_label --out runs/one
    manylabel train scenes --set loss.name=asl --set train.ema=0.999 --out runs/try
    manylabel train --recipe adamv-moe-scenes --out runs/several
    manylabel train --resume --out runs/mine
    """
    chosen = [name for name, flag in (("frozen", frozen), ("partial", partial), ("full", full)) if flag]
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
        "--task": ("task", task),
        "--backbone": ("backbone.name", backbone),
        **{f"--{name}": ("backbone.freeze", name) for name in chosen},
        "--epochs": ("train.epochs", epochs),
        "--seed": ("train.seed", seed),
    }
    refuse_set_too(settings, {option: key for option, (key, value) in asked.items() if value is not None})
    sections: dict[str, Any] = {}
    if head:
        sections["head"] = {"name": head}
    if task:
        sections["task"] = task
    if backbone:
        sections["backbone"] = {"name": backbone}
    if chosen:
        sections.setdefault("backbone", {})["freeze"] = chosen[0]
    if epochs is not None:
        sections["train"] = {"epochs": epochs}
    if run_names_tasks(recipe, out, resume):
        given = {"--head": head, "--task": task, "--backbone": backbone, "--transfer": transfer, "--epochs": epochs}
        refused = [name for name, value in given.items() if value] + [f"--{name}" for name in chosen]
        where = data_section(data, data_format, settings) or None
        train_several(where, out, recipe, seed, settings or [], resume, overwrite, refused)
        return
    if seed is not None:
        sections.setdefault("train", {})["seed"] = seed
    from manylabel import run
    from manylabel.printing import print_figures

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
    print_figures(result.results)
    echo(f"report: {out / 'report.html'}\nuse it: manylabel predict {out} IMAGE…")


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="folder of a run or a bundle")],
    data: Annotated[str | None, typer.Option(help=f"{DATA_HELP}; default: what it was trained on")] = None,
    split: Annotated[str | None, typer.Option(help="train, val or test; default: val where there is one")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="write results.json here")] = None,
    report_file: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="write a report here")] = None,
    task: Annotated[str | None, typer.Option(help="of a model for several tasks: only this one")] = None,
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
    """
    from manylabel import run as runs
    from manylabel.printing import print_figures
    from manylabel.storage.atomic import write_json

    check_output(json_file, overwrite)
    check_output(report_file, overwrite)
    check_apart({"--json": json_file, "--report": report_file})
    if model_has_tasks(run):
        refuse(["--set"] if settings else [])
        results = evaluate_several(run, data, task, split, data_format, json_file, report_file, overwrite)
        _end_evaluation(list(results["tasks"].values()), allow_trained or split == "train")
        return
    if task is not None:
        raise ManylabelError(f"--task is for models with several tasks; {run} has one")
    asked = [f"data.format={data_format}"] if data_format else []
    refuse_set_too(settings, {"--format": "data.format"} if data_format else {})
    results, extra = runs.evaluate(run, data=data, split=split, settings=[*asked, *(settings or [])])
    print_figures(results)
    if json_file:
        write_json(json_file, results)
    if report_file:
        from manylabel.report import write_report

        write_report(results, extra, report_file)
    _end_evaluation([results], allow_trained or split == "train")


def _end_evaluation(judged: list[dict[str, Any]], allowed: bool) -> None:
    """Scripts that take figures for those of new images must fail where they are not."""
    if not allowed and any(results["trained_images"] for results in judged):
        raise typer.Exit(1)


@app.command()
def predict(
    bundle: Annotated[Path, typer.Argument(help="folder of a bundle or a run")],
    images: Annotated[list[Path], typer.Argument(help="image files, folders of images, tar and Parquet shards")],
    as_json: Annotated[bool, typer.Option("--json", help="all labels as JSON on standard output")] = False,
    top: Annotated[int | None, typer.Option(help="at most so many labels per image", min=1)] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="other labels than the trained ones, with commas, or a .txt file of them (zero-shot models)"),
    ] = None,
    vectors: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="with --labels: where the word vectors are, if the model knows words by a file"
        ),
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="write labels and scores here")] = None,
    label_studio: Annotated[
        Path | None,
        typer.Option("--label-studio", metavar="FILE", help="write tasks for Label Studio here, to correct"),
    ] = None,
    task: Annotated[str | None, typer.Option(help="of a model for several tasks: which one")] = None,
    overlays: Annotated[
        Path | None,
        typer.Option("--overlay", metavar="FOLDER", help="of a model that detects: pictures with boxes and masks"),
    ] = None,
    score: Annotated[
        float | None,
        typer.Option(help="of a model that detects: lowest score of an object; default: best F1", min=0, max=1),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Say what is in images: the labels whose score reaches their own threshold (--json: all labels).

    Folders are searched for images; tar and Parquet shards are read as they are.

    \b
    manylabel predict runs/mine holiday.jpg photos/
    manylabel predict runs/mine holiday.jpg --json --top 5
    manylabel predict runs/mine shards/*.tar --csv tags.csv
    manylabel predict runs/words holiday.jpg --labels "cat, tractor, birthday cake"
    manylabel predict runs/mine photos/ --label-studio tasks.json
    manylabel predict runs/several holiday.jpg --task objects --overlay found
    """
    if model_has_tasks(bundle):
        given = {"--labels": labels, "--vectors": vectors, "--csv": csv, "--label-studio": label_studio}
        refuse([name for name, value in given.items() if value])
        predict_several(bundle, images, task, as_json, top, overlays, score, overwrite)
        return
    if task is not None or overlays is not None or score is not None:
        raise ManylabelError(f"--task, --overlay and --score are for models with several tasks; {bundle} has one")
    from contextlib import ExitStack

    from manylabel import console
    from manylabel.data.read.label_studio_config import CONFIG_NAME
    from manylabel.predict import Predictor, find_images
    from manylabel.prediction_file import csv_file, label_studio_file
    from manylabel.printing import prediction_line, written_images
    from manylabel.zero_shot import label_names

    check_output(csv, overwrite)
    interface = label_studio.parent / CONFIG_NAME if label_studio else None
    check_apart({"--csv": csv, "--label-studio": label_studio, "the labelling interface": interface})
    if label_studio:
        check_output(label_studio, overwrite)
        check_output(label_studio.parent / CONFIG_NAME, overwrite)
    found = find_images(images)
    predictor = Predictor.load(bundle)
    if labels is not None:
        predictor = predictor.for_labels(label_names(labels, "--labels"), text_file=vectors)
    elif vectors is not None:
        raise ManylabelError("--vectors goes with --labels")
    asked = ((csv, csv_file), (label_studio, label_studio_file))
    read = 0
    with ExitStack() as files:
        sinks = [files.enter_context(open_file(path, predictor.labels, top)) for path, open_file in asked if path]
        advance = files.enter_context(console.counting("predicting", len(found))) if as_json or sinks else None
        kept = []
        for prediction in predictor.stream(found, *([advance] if advance else [])):  # lines as soon as they are known
            read += prediction.error is None
            for add in sinks:
                add(prediction)
            if as_json:
                kept.append(prediction.plain(top))
            elif not sinks or prediction.error is not None:
                echo(in_one_line(prediction_line(prediction, top)))
    if as_json:
        echo(to_json(kept))
    for path, _ in asked:
        if path:
            echo(written_images(path, read, len(found)), err=as_json)
    if label_studio:
        echo(f"the labelling interface for them is in {label_studio.parent / CONFIG_NAME}", err=as_json)
    if not read:
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
    if model_has_tasks(run):
        report_several(run, None if own else out, overwrite)
        return
    from manylabel.report import report_from_files

    echo(report_from_files(run, out))


app.command()(compare)
app.command()(explain)
app.command()(hard)
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
