"""What a page of the documentation shows to be typed: blocks of code, and code within its sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parents[2]
SHELL = ("manylabel", "make", "source", "pip", ".venv/bin/")
FENCE = "```"
HISTORY = "CHANGELOG.md"  # tells of commands as they were


@dataclass(frozen=True)
class Block:
    """Lines that are set apart as code; `line` is where the first of them stands in the page."""

    line: int
    text: str

    @property
    def kind(self) -> str:
        """shell, file, python, csv, yaml, or '' where a reader would type nothing."""
        first = self.text.split("\n", 1)[0]
        if self.file:
            return "file"
        if first.startswith(SHELL):
            return "shell"
        if re.match(r"(import|from) [\w.]+", first):
            return "python"
        if first.startswith("file_name,"):
            return "csv"
        return "yaml" if re.match(r"[\w-]+:( |$)", first) else ""

    @property
    def file(self) -> str:
        """Where the block is to be written, as a comment in its first line says; '' for any other."""
        named = re.match(r"# ([\w./-]+/[\w.-]+\.\w+)\n", self.text)
        return named[1] if named else ""

    @property
    def content(self) -> str:
        """Of a file."""
        return self.text.split("\n", 1)[1] + "\n"

    def commands(self) -> Iterator[tuple[int, str]]:
        """(line of the page, command) of each line that is not empty."""
        for number, line in enumerate(self.text.split("\n"), self.line):
            if line.strip():
                yield number, line.strip()


def pages() -> list[Path]:
    """Every page that tells a reader what to do."""
    return [*(page for page in sorted(HERE.glob("*.md")) if page.name != HISTORY), *sorted(HERE.glob("docs/**/*.md"))]


def blocks(text: str) -> list[Block]:
    """Blocks that are indented by four spaces behind an empty line, or fenced."""
    found, kept, first, fenced = [], [], 0, False
    before = ""
    for number, line in enumerate([*text.split("\n"), "end"], 1):
        if line.startswith(FENCE):
            if fenced:
                found.append(Block(first, "\n".join(kept)))
            fenced, kept, first = not fenced, [], number + 1
        elif fenced:
            kept.append(line)
        elif line.startswith("    ") and (kept or not before.strip()):
            first = first if kept else number
            kept.append(line[4:])
        elif kept and not line.strip():
            kept.append("")
        elif kept:
            found.append(Block(first, "\n".join(kept).rstrip()))
            kept = []
        before = line
    return found


def spans(text: str) -> list[tuple[int, str]]:
    """(line, code) of all code within sentences, which may go over the end of a line."""
    lines = text.split("\n")
    for block in blocks(text):
        for number in range(block.line - 1, block.line - 1 + len(block.text.split("\n"))):
            lines[number] = ""
    lines = ["" if line.startswith(FENCE) else line for line in lines]
    found, number = [], 1
    for paragraph in re.split(r"(\n\s*\n)", "\n".join(lines)):  # a lone ` in one paragraph spoils no other
        for match in re.finditer(r"`([^`]+)`", paragraph):
            line = number + paragraph[: match.start()].count("\n")
            found.append((line, " ".join(match[1].replace("\\|", "|").split())))
        number += paragraph.count("\n")
    return found


def table_rows(text: str, heading: str) -> list[str]:
    """The first cells of the table whose header begins with `heading`."""
    rows, within = [], False
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        within = bool(cells) and (within or cells[0] == heading)
        if within and cells[0] != heading and not set(cells[0]) <= set("-:"):
            rows.append(cells[0])
    return rows
