"""manylabel predict: what is in images."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from manylabel.cli.common import Overwrite
from manylabel.error import ManylabelError
from manylabel.runtime.printable import in_one_line
from manylabel.runtime.terminal import echo
from manylabel.storage.json_text import to_json
from manylabel.storage.output import check_apart, check_output, check_outputs


def predict(
    bundle: Annotated[
        Path, typer.Argument(help="folder of a run or a bundle, or a file that 'manylabel export' wrote")
    ],
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
    task: Annotated[
        str | None, typer.Option(help="of a model with several tasks: only this one; default: all of them")
    ] = None,
    overlays: Annotated[
        Path | None,
        typer.Option("--overlay", metavar="FOLDER", help="of a task that detects: pictures with boxes and masks"),
    ] = None,
    score: Annotated[
        float | None,
        typer.Option(help="of a task that detects: lowest score of an object; default: best F1", min=0, max=1),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="what computes an exported file: onnx (default), openvino, or auto: the faster one"),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Say what is in images: the labels whose score reaches their own threshold (--json: all labels), and objects.

    Folders are searched for images; tar and Parquet shards are read as they are.

    \b
    manylabel predict runs/mine holiday.jpg photos/
    manylabel predict runs/mine holiday.jpg --json --top 5
    manylabel predict runs/mine shards/*.tar --csv tags.csv
    manylabel predict runs/words holiday.jpg --labels "cat, tractor, birthday cake"
    manylabel predict runs/mine photos/ --label-studio tasks.json
    manylabel predict mine.onnx photos/ --engine auto
    manylabel predict runs/several holiday.jpg
    manylabel predict runs/several holiday.jpg --task objects --overlay found
    """
    from manylabel import console
    from manylabel.data.read.label_studio_config import CONFIG_NAME
    from manylabel.inference.images import find_images
    from manylabel.inference.predictor import Predictor
    from manylabel.prediction_file import csv_file, label_studio_file
    from manylabel.printing import written_images
    from manylabel.zero_shot import label_names

    check_output(csv, overwrite)
    interface = label_studio.parent / CONFIG_NAME if label_studio else None
    check_apart({"--csv": csv, "--label-studio": label_studio, "the labelling interface": interface})
    if label_studio:
        check_output(label_studio, overwrite)
        check_output(label_studio.parent / CONFIG_NAME, overwrite)
    found = find_images(images)
    predictor = Predictor.load(bundle, engine=engine)
    names = [task] if task is not None else list(predictor.tasks)
    task = names[0] if len(names) == 1 else None
    detects = [name for name in names if predictor.of(name) and predictor.finds_objects(name)]
    with_labels = [name for name in names if name not in detects]
    _check(predictor, names, detects, {"--overlay": overlays, "--score": score})
    files = {"--csv": csv, "--label-studio": label_studio, "--labels": labels, "--vectors": vectors}
    _check_labels(names, with_labels, [option for option, given in files.items() if given])
    if labels is not None:
        if overlays is not None or score is not None:
            raise ManylabelError("--overlay and --score are for objects, --labels for labels; ask for one of them")
        predictor = predictor.for_labels(label_names(labels, "--labels"), text_file=vectors, task=with_labels[0])
        names, detects, task = with_labels, [], None
    elif vectors is not None:
        raise ManylabelError("--vectors goes with --labels")
    drawn = None
    if overlays is not None:
        check_outputs(overlays, ("[0-9][0-9][0-9][0-9]-*.png",), overwrite)
        drawn = _Overlays(overlays, list(found), top)
    asked = ((csv, csv_file), (label_studio, label_studio_file))
    read = 0
    with ExitStack() as opened:
        sinks = [
            opened.enter_context(open_file(path, predictor.of(with_labels[0]).labels, top))
            for path, open_file in asked
            if path
        ]
        advance = opened.enter_context(console.counting("predicting", len(found))) if as_json or sinks else None
        kept = []
        workers = os.cpu_count() or 1 if len(found) > 1 else 0
        stream = predictor.stream(found, advance or (lambda _: None), task=task, score=score, workers=workers)
        for number, answer in enumerate(stream):  # lines as soon as they are known
            answers = answer if isinstance(answer, dict) else {names[0]: answer}
            read += all(one.error is None for one in answers.values())
            for add in sinks:
                add(answers[with_labels[0]])
            if drawn is not None:
                drawn.add(number, answers[detects[0]])
            if as_json:
                kept.append(_plain(answer, top))
            elif not sinks or any(one.error is not None for one in answers.values()):
                for line in _lines(answers, top):
                    echo(in_one_line(line))
    if as_json:
        echo(to_json(kept))
    for path, _ in asked:
        if path:
            echo(written_images(path, read, len(found)), err=as_json)
    if label_studio:
        echo(f"the labelling interface for them is in {label_studio.parent / CONFIG_NAME}", err=as_json)
    if overlays is not None and read:
        echo(f"pictures with what was found are in {overlays}", err=as_json)
    if not read:
        raise typer.Exit(1)


def _check(predictor: Any, names: Sequence[str], detects: Sequence[str], given: dict[str, Any]) -> None:
    """Options for objects are refused where none are looked for."""
    for option in (name for name, value in given.items() if value is not None):
        if not detects:
            whose = f"task {names[0]} gives" if len(predictor.tasks) > 1 else "this model gives"
            raise ManylabelError(f"{option} is for objects; {whose} labels")
        if len(detects) > 1:
            raise ManylabelError(f"{option}: which task's objects? Choose one with --task: {', '.join(detects)}")


def _check_labels(names: Sequence[str], with_labels: Sequence[str], given: Sequence[str]) -> None:
    """Options for labels are refused where there are none, or those of several tasks."""
    for option in given:
        if not with_labels:
            raise ManylabelError(f"{option} is for labels; task {names[0]} finds objects")
        if len(with_labels) > 1:
            raise ManylabelError(f"{option}: which task's labels? Choose one with --task: {', '.join(with_labels)}")


def _plain(answer: Any, top: int | None) -> Any:
    """For JSON; of several tasks with the image once."""
    if not isinstance(answer, dict):
        return answer.plain(top)
    told = {name: one.plain(top) for name, one in answer.items()}
    image = next(iter(told.values()))["image"]
    return {
        "image": image,
        "tasks": {name: {k: v for k, v in one.items() if k != "image"} for name, one in told.items()},
    }


def _lines(answers: dict[str, Any], top: int | None) -> Iterator[str]:
    from manylabel.inference.found_objects import FoundObjects
    from manylabel.printing import prediction_line

    for name, one in answers.items():
        line = _objects_line(one, top) if isinstance(one, FoundObjects) else prediction_line(one, top)
        if len(answers) > 1:
            line = f"{one.image}: {name}: {line.removeprefix(f'{one.image}: ')}"
        yield line
        if one.error is not None:
            return


def _objects_line(found: Any, top: int | None) -> str:
    if found.error is not None:
        return f"{found.image}: cannot be read: {found.error}"
    objects = ", ".join(
        f"{one.label} {one.score:.2f} at {' '.join(f'{side:.0f}' for side in one.box)}" for one in found.objects[:top]
    )
    return f"{found.image}: {objects or 'nothing'}"


class _Overlays:
    """Pictures with boxes and masks drawn on them."""

    def __init__(self, folder: Path, images: Sequence[Any], top: int | None) -> None:
        self.folder, self.images, self.top = folder, images, top

    def add(self, number: int, found: Any) -> None:
        from manylabel.data.given_image import read_image
        from manylabel.explain.picture_folder import safe
        from manylabel.inference.found_objects import overlay
        from manylabel.storage.png import save_png

        if found.error is not None:
            return
        picture = read_image(self.images[number]).picture
        if picture is not None:  # it was a moment ago
            path = self.folder / f"{number + 1:04d}-{safe(Path(found.image).stem)}.png"
            save_png(overlay(picture, replace(found, objects=found.objects[: self.top])), path)
