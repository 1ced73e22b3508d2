"""Which expert sees which patch, drawn on the image: edge = first choice, tint = second (AdaMV-MoE, Fig. 3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageColor, ImageDraw

from manylabel.analysis.val_images import val_batches
from manylabel.core.colours import COLOURS
from manylabel.core.trace import Trace
from manylabel.expert import Routing
from manylabel.model import Model, evaluating
from manylabel.storage.png import save_png
from manylabel.training.work import TaskAtWork

IMAGES = 3
SIDE = 384  # pixels of a drawn image
TINT = 0.35


def draw_patches(model: Model, works: Mapping[str, TaskAtWork], folder: Path, device: torch.device) -> list[Path]:
    """patches-<task>-<i>.png of the first val images, by the routing of the last sparse layer."""
    drawn: list[Path] = []
    if not model.backbone.adapts:
        return drawn
    folder.mkdir(parents=True, exist_ok=True)
    for name, work in works.items():
        batch = next(val_batches(work, model, IMAGES), None)
        if batch is None:
            continue
        pixels, routes = batch.pixels[:IMAGES], dict[int, Routing]()
        with evaluating(model):
            grid = model.backbone(pixels.to(device), Trace(routes=routes), name).grid()
        chosen = routes[max(routes)].expert.view(len(pixels), *grid, -1).cpu().numpy()
        for number, (image, choice) in enumerate(zip(pixels, chosen, strict=True)):
            path = folder / f"patches-{name}-{number + 1}.png"
            drawn.append(save_png(paint(image.permute(1, 2, 0).numpy(), choice), path))
    return drawn


def paint(image: np.ndarray, choice: np.ndarray) -> Image.Image:
    """image uint8 [H, W, 3], choice [rows, columns, k]: experts of every patch, surest first; with one there is no tint."""
    rows, columns = choice.shape[:2]
    shown = Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    cells = {
        (y, x): (SIDE * x // columns, SIDE * y // rows, SIDE * (x + 1) // columns - 1, SIDE * (y + 1) // rows - 1)
        for y in range(rows)
        for x in range(columns)
    }
    if choice.shape[2] > 1:
        tint = Image.new("RGB", shown.size)
        second = ImageDraw.Draw(tint)
        for (y, x), cell in cells.items():
            second.rectangle(cell, fill=_colour(choice[y, x, 1]))
        shown = Image.blend(shown, tint, TINT)
    first = ImageDraw.Draw(shown)
    for (y, x), cell in cells.items():
        first.rectangle(cell, outline=_colour(choice[y, x, 0]), width=2)
    return shown


def _colour(expert: int) -> tuple[int, ...]:
    """A colour of its own for each of the first eight experts, then darker ones."""
    red, green, blue = ImageColor.getrgb(COLOURS[int(expert) % len(COLOURS)])[:3]
    shade = 0.8 ** (int(expert) // len(COLOURS))
    return round(red * shade), round(green * shade), round(blue * shade)
