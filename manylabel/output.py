"""Files that a command is asked to write: never in place of somebody else's."""

from __future__ import annotations

from pathlib import Path

from manylabel.error import ManylabelError


def check_output(path: Path | None, *beginnings: str) -> None:
    """Stop if `path` is there and does not begin like a file that this command writes (one of `beginnings`)."""
    if path is None or not path.exists():
        return
    if path.is_dir():
        raise ManylabelError(f"{path} is a folder; name a file to write")
    with open(path, "rb") as file:
        start = file.read(200).lstrip().lower()
    if not any(start.startswith(beginning.encode().lower()) for beginning in beginnings):
        raise ManylabelError(f"{path} is there already and was not written by this command; choose another name")
