"""What the commands do with a model for several tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from manylabel.error import ManylabelError
from manylabel.runtime.printable import in_one_line
from manylabel.runtime.terminal import echo
from manylabel.storage.json_text import to_json
from manylabel.storage.output import check_outputs


def refuse(options: Sequence[str]) -> None:
    """Options that were given and mean nothing here."""
    if options:
        raise ManylabelError(
            f"{', '.join(options)}: not for a model with several tasks, whose recipe says such things for each of them "
            "(--set tasks.NAME.…=…)"
        )


def train_several(
    data: dict[str, Any] | None,
    out: Path,
    recipe: str | None,
    seed: int | None,
    settings: Sequence[str],
    resume: bool,
    overwrite: bool,
    refused: Sequence[str],
) -> None:
    """`refused`: options that were given and mean nothing here."""
    from manylabel.multitask.run import train_tasks
    from manylabel.printing_tasks import print_tasks

    refuse(refused)
    result = train_tasks(
        out, recipe=recipe, data=data, settings=settings, seed=seed, resume=resume, overwrite=overwrite
    )
    print_tasks(result.results)
    echo(f"report: {out / 'report.html'}\nuse it: manylabel predict {out} IMAGE… --task NAME")


def evaluate_several(
    run: Path,
    data: str | None,
    task: str | None,
    split: str | None,
    data_format: str | None,
    json_file: Path | None,
    report_file: Path | None,
    overwrite: bool,
) -> dict[str, Any]:
    from manylabel.multitask.judging import evaluate_tasks
    from manylabel.printing_tasks import print_tasks
    from manylabel.storage.atomic import write_json

    _check_figures(report_file, overwrite)
    results = evaluate_tasks(run, data=data, task=task, split=split, format=data_format)
    print_tasks(results)
    if json_file:
        write_json(json_file, results)
    if report_file:
        from manylabel.report.multitask_page import write_multitask_report

        write_multitask_report(results, [], report_file)
    return results


def _check_figures(report: Path | None, overwrite: bool) -> None:
    """A page of several tasks has its figures in a folder beside it, too."""
    if report is not None:
        check_outputs(report.parent / "figures", ("[0-9][0-9]-*.png",), overwrite)


def report_several(run: Path, out: Path | None, overwrite: bool) -> None:
    """`out`: another place than the run's own report, which is made anew with its figures."""
    from manylabel.report.multitask_page import report_from_run

    _check_figures(out or run / "report.html", overwrite or out is None)
    echo(report_from_run(run, out))


def predict_several(
    bundle: Path,
    images: list[Path],
    task: str | None,
    as_json: bool,
    top: int | None,
    overlays: Path | None,
    score: float | None,
    overwrite: bool,
) -> None:
    """Labels, or objects, of one task; with `overlays` pictures with boxes and masks drawn on them."""
    from manylabel.data.given_image import read_image
    from manylabel.explain.picture_folder import safe
    from manylabel.multitask.predict import FoundObjects, TaskPredictor, overlay
    from manylabel.predict import find_images
    from manylabel.printing import prediction_line
    from manylabel.storage.png import save_png

    predictor = TaskPredictor.load(bundle)
    if task is None and len(predictor.tasks) > 1:
        raise ManylabelError(f"this model has several tasks; choose one with --task: {', '.join(predictor.tasks)}")
    name = task or predictor.tasks[0]
    detects = predictor.model.number(name) >= 0 and predictor.bundle.task(name).finds_objects
    if overlays is not None and not detects:
        raise ManylabelError(f"--overlay draws boxes and masks; task {name} gives labels")
    if score is not None and not detects:
        raise ManylabelError(f"--score is for objects; task {name} gives labels, each with a threshold of its own")
    found = list(find_images(images))
    if overlays is not None:
        check_outputs(overlays, ("[0-9][0-9][0-9][0-9]-*.png",), overwrite)
    kept: list[Any] = []
    read = 0
    stream: Any = predictor.find(found, name, score) if detects else predictor.classify(found, name)  # type: ignore[arg-type]
    for number, one in enumerate(stream):
        read += one.error is None
        if as_json:
            kept.append(one.plain(top))
        else:
            echo(in_one_line(_objects_line(one, top) if isinstance(one, FoundObjects) else prediction_line(one, top)))
        if overlays is not None and one.error is None:
            path = overlays / f"{number + 1:04d}-{safe(Path(one.image).stem)}.png"
            picture = read_image(found[number]).picture
            if picture is not None:  # it was a moment ago
                save_png(overlay(picture, replace(one, objects=one.objects[:top])), path)
    if as_json:
        echo(to_json(kept))
    if overlays is not None and read:
        echo(f"pictures with what was found are in {overlays}", err=as_json)
    if not read:
        raise typer.Exit(1)


def _objects_line(found: Any, top: int | None) -> str:
    if found.error is not None:
        return f"{found.image}: cannot be read: {found.error}"
    objects = ", ".join(
        f"{one.label} {one.score:.2f} at {' '.join(f'{side:.0f}' for side in one.box)}" for one in found.objects[:top]
    )
    return f"{found.image}: {objects or 'nothing'}"
