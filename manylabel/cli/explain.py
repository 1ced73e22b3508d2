"""manylabel explain: where in an image a model finds a label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


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
        str | None, typer.Option(help="stage of the backbone, e.g. stage4; default: final, or all of the attention")
    ] = None,
    out: Annotated[Path, typer.Option(help="folder for the pictures and sheet.png")] = Path("explanations"),
    heads: Annotated[bool, typer.Option("--heads", help="a picture for each attention head, too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="scores, maps and files as JSON on standard output")] = False,
) -> None:
    """Show where in images the model finds its labels: a picture for each image and label, and one sheet of all.

    \b
    manylabel explain runs/mine holiday.jpg
    manylabel explain runs/mine photos/ --label cat --label dog --out why
    manylabel explain runs/mine holiday.jpg --method grad_cam --stage stage4
    manylabel explain runs/attention holiday.jpg --method attention --heads --json
    """
    from manylabel import console
    from manylabel.explain import Explainer
    from manylabel.explain.picture_folder import PictureFolder
    from manylabel.predict import Predictor, find_images

    found = find_images(images)
    explainer = Explainer(Predictor.load(bundle), method, stage)
    if label:
        explainer.columns(label)
    pictures = PictureFolder(out, heads)
    rows, read = [], 0
    with console.counting("explaining", len(found)) as advance:
        for row in explainer.stream(found, label or None, advance):
            for explanation, files in zip(row, pictures.add(row), strict=True):
                read += explanation.error is None
                if as_json:
                    rows.append({**explanation.plain(), "files": [str(file) for file in files]})
                elif explanation.error is not None:
                    typer.echo(f"{explanation.image}: cannot be read: {explanation.error}")
                else:
                    typer.echo(f"{explanation.image}: {explanation.label} {100 * explanation.score:.0f} %: {files[0]}")
    sheet = pictures.close()
    if as_json:
        typer.echo(json.dumps(rows, indent=1, ensure_ascii=False))
    typer.echo(f"all on one page: {sheet} ({explainer.method}, {'+'.join(explainer.stages)})", err=as_json)
    if not read:
        raise typer.Exit(1)
