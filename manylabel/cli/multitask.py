"""What the commands do with a model for several tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from manylabel.error import ManylabelError


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
    typer.echo(f"report: {out / 'report.html'}\nuse it: manylabel predict {out} IMAGE… --task NAME")


def evaluate_several(
    run: Path,
    data: str | None,
    task: str | None,
    split: str | None,
    data_format: str | None,
    json_file: Path | None,
    report_file: Path | None,
) -> None:
    from manylabel.atomic import write_json
    from manylabel.multitask.judging import evaluate_tasks
    from manylabel.printing_tasks import print_tasks

    results = evaluate_tasks(run, data=data, task=task, split=split, format=data_format)
    print_tasks(results)
    if json_file:
        write_json(json_file, results)
    if report_file:
        from manylabel.report.multitask_page import write_multitask_report

        write_multitask_report(results, [], report_file)


def report_several(run: Path, out: Path | None) -> None:
    from manylabel.report.multitask_page import report_from_run

    typer.echo(report_from_run(run, out))


def predict_several(
    bundle: Path,
    images: list[Path],
    task: str | None,
    as_json: bool,
    top: int | None,
    overlays: Path | None,
    score: float | None,
) -> None:
    """Labels, or objects, of one task; with `overlays` pictures with boxes and masks drawn on them."""
    from manylabel.data.decode import decode
    from manylabel.data.shard.packed import PackedImage
    from manylabel.multitask.predict import FoundObjects, TaskPredictor, overlay
    from manylabel.predict import find_images
    from manylabel.printing import prediction_line

    predictor = TaskPredictor.load(bundle)
    if task is None and len(predictor.tasks) > 1:
        raise ManylabelError(f"this model has several tasks; choose one with --task: {', '.join(predictor.tasks)}")
    name = task or predictor.tasks[0]
    detects = predictor.model.number(name) >= 0 and predictor.bundle.config.tasks[name].kind == "detection"
    if overlays is not None and not detects:
        raise ManylabelError(f"--overlay draws boxes and masks; task {name} gives labels")
    if score is not None and not detects:
        raise ManylabelError(f"--score is for objects; task {name} gives labels, each with a threshold of its own")
    found = list(find_images(images))
    kept: list[Any] = []
    read = 0
    stream: Any = predictor.find(found, name, score) if detects else predictor.classify(found, name)  # type: ignore[arg-type]
    for number, one in enumerate(stream):
        read += one.error is None
        if as_json:
            kept.append(one.plain(top))
        else:
            typer.echo(_objects_line(one, top) if isinstance(one, FoundObjects) else prediction_line(one, top))
        if overlays is not None and one.error is None:
            overlays.mkdir(parents=True, exist_ok=True)
            path = overlays / f"{number + 1:04d}-{Path(one.image).stem}.png"
            image: Any = found[number]
            overlay(image.read() if isinstance(image, PackedImage) else decode(image), one).save(path)
    if as_json:
        typer.echo(json.dumps(kept, indent=1, ensure_ascii=False))
    if overlays is not None and read:
        typer.echo(f"pictures with what was found are in {overlays}", err=as_json)
    if not read:
        raise typer.Exit(1)


def _objects_line(found: Any, top: int | None) -> str:
    if found.error is not None:
        return f"{found.image}: {found.error}"
    objects = ", ".join(
        f"{one.label} {one.score:.2f} at {' '.join(f'{side:.0f}' for side in one.box)}" for one in found.objects[:top]
    )
    return f"{found.image}: {objects or 'nothing'}"
