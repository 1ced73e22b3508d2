"""Rich's console, for text that strangers wrote."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from manylabel.runtime.printable import printable
from manylabel.runtime.terminal import READER_GONE, turn_off

NARROWEST, WIDEST = 40, 1000  # of a terminal whose width is believed


class Terminal(Console):
    """No [markup], no :emoji:, no control characters, and never too narrow to show anything."""

    def __init__(self, **options: Any) -> None:
        usable = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
        sizes = {key: os.environ[key] for key in ("COLUMNS", "LINES") if is_size(os.environ.get(key, ""))}
        super().__init__(markup=False, emoji=False, highlight=False, _environ={**usable, **sizes}, **options)

    @property
    def size(self) -> ConsoleDimensions:
        width, height = super().size
        return ConsoleDimensions(min(max(width, NARROWEST), WIDEST), height)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        self._width, self._height = new_size

    def on_broken_pipe(self) -> None:
        """Rich would turn standard output off, whichever this is, and end as failed."""
        turn_off(self.file)  # type: ignore[arg-type]
        raise SystemExit(READER_GONE)

    def render_str(self, text: str, **options: Any) -> Text:  # type: ignore[override]
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        if isinstance(renderable, Text) and (plain := printable(renderable.plain)) != renderable.plain:
            renderable = Text(plain, renderable.style, justify=renderable.justify, overflow=renderable.overflow)
        return super().render(renderable, options)


def is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < len(text) < 7 and int(text) > 0
