"""manylabel export: a run as a file that runs without it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manylabel.cli.common import Overwrite
from manylabel.runtime.terminal import echo


def export(
    run: Annotated[Path, typer.Argument(help="folder of a run or a bundle")],
    to: Annotated[
        str,
        typer.Option(help="onnx (float32), int8 (the same in whole numbers, if it loses little), or tagger (a folder)"),
    ] = "onnx",
    out: Annotated[
        Path | None,
        typer.Option(help="file to write; default: model.onnx in that folder (of a tagger: the folder tagger in it)"),
    ] = None,
    form: Annotated[
        str, typer.Option(help="plain: normalised pixels to logits; full: an image to what is in it")
    ] = "plain",
    task: Annotated[str | None, typer.Option(help="of a model with several tasks: only this one")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a model as one file that runs without torch, after it was found equal to the bundle on real images.

    \b
    manylabel export runs/mine --to onnx --out mine.onnx
    manylabel predict mine.onnx holiday.jpg
    manylabel export runs/mine --form full --out whole.onnx
    manylabel export runs/mine --to int8 --out small.onnx
    manylabel export runs/mine --to tagger --out tagger
    """
    from manylabel.exporting import export as write

    found = write(
        run,
        out or run / ("tagger" if to == "tagger" else "model.onnx"),
        to=to,
        form=form,
        task=task,
        overwrite=overwrite,
    )
    for name, proof in found.proofs.items():
        whose = f"task {name}: " if len(found.proofs) > 1 else ""
        lost = "" if proof.lost_mean_ap is None else f", mAP {-proof.lost_mean_ap:+.2f} points"
        speeds = f"{proof.file_images_per_second:g} images/s, {proof.bundle_images_per_second:g} by torch"
        echo(
            f"{whose}within its limits on {proof.source}: logits differ by {proof.logits:.1g}, {proof.flipped} of "
            f"{proof.decisions} decisions are others{lost}; {speeds}{'' if proof.faster else ': it is NOT faster'}"
        )
    echo(f"{found.file}, and how it was compared: {found.page}\nuse it: manylabel predict {found.file} IMAGE…")
