"""All explanations on one page: a row for each image, a column for each label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from PIL import Image, ImageDraw

from manylabel.explain.explanation import Explanation
from manylabel.explain.overlay import INK, MARGIN, PAPER, captioned, fitted, text_font, with_lines

CELL = 224  # pixels of the longer side of a picture
MOST_ROWS = 40
NAME_SIZE = 12


def contact_sheet(rows: Sequence[Sequence[Explanation]], left_out: int = 0) -> Image.Image:
    """The photo and the overlays of each image side by side; images that could not be read say why.

    `left_out` says how many images more there are.
    """
    drawn = [_row(row) for row in rows]
    widths = [max(row[i].width for row in drawn if i < len(row)) for i in range(max(map(len, drawn)))]
    heights = [max(cell.height for cell in row) for row in drawn]
    tall = sum(heights) + MARGIN * (len(drawn) + 1) + (3 * NAME_SIZE if left_out else 0)
    sheet = Image.new("RGB", (sum(widths) + MARGIN * (len(widths) + 1), tall), PAPER)
    y = MARGIN
    for row, height in zip(drawn, heights, strict=True):
        x = MARGIN
        for cell, width in zip(row, widths, strict=False):
            sheet.paste(cell, (x, y))
            x += width + MARGIN
        y += height + MARGIN
    if left_out:
        words = f"and {left_out} images more"
        ImageDraw.Draw(sheet).text((MARGIN, y), words, font=text_font(NAME_SIZE), fill=INK)
    return sheet


def _row(row: Sequence[Explanation]) -> list[Image.Image]:
    first = row[0]
    name = PurePath(first.image).name
    if first.photo is None:
        blank = Image.new("RGB", (CELL, CELL // 2), (235, 236, 239))
        font = text_font(NAME_SIZE)
        reason = fitted(f"cannot be read: {first.error}", font, CELL - 2 * MARGIN)
        ImageDraw.Draw(blank).text((MARGIN, CELL // 4), reason, font=font, fill=INK)
        return [with_lines(blank, (name,))]
    photo = first.photo.copy()
    photo.thumbnail((CELL, CELL))
    return [with_lines(photo, (name,)), *(captioned(found, CELL) for found in row)]
