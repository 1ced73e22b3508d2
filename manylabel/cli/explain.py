"""manylabel explain: where in an image a model finds a label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manylabel.cli.common import Overwrite
from manylabel.error import ManylabelError
from manylabel.runtime.printable import in_one_line
from manylabel.runtime.terminal import echo
from manylabel.storage.json_text import to_json


def explain(
    bundle: Annotated[Path, typer.Argument(help="folder of a bundle or a run")],
    images: Annotated[list[Path], typer.Argument(help="image files, folders of images, tar and Parquet shards")],
    label: Annotated[
        list[str] | None,
        typer.Option(help="explain this label; may be repeated; default: those above their threshold, five at most"),
    ] = None,
    method: Annotated[
        str, typer.Option(help="auto, attention (heads with queries), grad_cam, grad_cam_pp or eigen_cam")
    ] = "auto",
    stage: Annotated[
        str | None,
        typer.Option(
            help="stage of the backbone, e.g. stage4, or all of them; default: final, or all of the attention"
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="of a model with several tasks: which one")] = None,
    out: Annotated[Path, typer.Option(help="folder for the pictures and sheet.png")] = Path("explanations"),
    heads: Annotated[bool, typer.Option("--heads", help="a picture for each attention head, too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="scores, maps and files as JSON on standard output")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Show where in images the model finds its labels: a picture for each image and label, and one sheet of all.

    \b
    manylabel explain runs/mine holiday.jpg
    manylabel explain runs/mine photos/ --label cat --label dog --out why
    manylabel explain runs/mine holiday.jpg --method grad_cam --stage stage4
    manylabel explain runs/mine holiday.jpg --label banana --stage all
    manylabel explain runs/attention holiday.jpg --method attention --heads --json
    """
    from manylabel import console
    from manylabel.explain.every_stage import explainer_for
    from manylabel.explain.method import ATTENTION
    from manylabel.explain.picture_folder import PictureFolder
    from manylabel.inference.images import find_images
    from manylabel.inference.predictor import Predictor

    found = find_images(images)
    explainer = explainer_for(Predictor.load(bundle), method, stage, task)
    if heads and explainer.method != ATTENTION:
        raise ManylabelError(
            f"--heads is for --method attention; here {explainer.method} is used, which has no heads to show"
        )
    if label:
        explainer.columns(label)
    pictures = PictureFolder(out, heads, overwrite)
    rows, read = [], 0
    with console.counting("explaining", len(found)) as advance:
        for row in explainer.stream(found, label or None, advance):
            for explanation, files in zip(row, pictures.add(row), strict=True):
                read += explanation.error is None
                if as_json:
                    rows.append({**explanation.plain(), "files": [str(file) for file in files]})
                elif explanation.error is not None:
                    echo(in_one_line(f"{explanation.image}: cannot be read: {explanation.error}"))
                else:
                    said = f"{explanation.image}: {explanation.label} {100 * explanation.score:.0f} %: {files[0]}"
                    echo(in_one_line(said))
    sheet = pictures.close()
    if as_json:
        echo(to_json(rows))
    echo(f"all on one page: {sheet} ({explainer.method}, {'+'.join(explainer.stages)})", err=as_json)
    if not read:
        raise typer.Exit(1)
