"""Tensors from a .safetensors file: no pickle, and a header that is looked at before anything follows it; and from what
torch.save wrote, for some weights come in no other form."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from manylabel.error import CheckpointError, ManylabelError
from manylabel.storage.json_text import parse_json
from manylabel.storage.plain_file import MB, open_plain

LONGEST_HEADER = 16 * MB
MOST_TENSORS = 100_000
LONGEST_NAME = 1000


class TensorFile(NamedTuple):
    """Tensors by name, and the texts that travel with them."""

    tensors: dict[str, Tensor]
    texts: dict[str, str]


def read_tensors(path: Path, error: type[ManylabelError] = CheckpointError) -> TensorFile:
    """All tensors; they take as much memory as the file is large, whatever its header says."""
    _check_header(path, error)
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            return TensorFile({name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {})  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError) as reason:
        raise error(
            f"{path} cannot be read: {str(reason).splitlines()[0] if str(reason) else reason!r:.200}"
        ) from reason
    except OverflowError as reason:
        raise error(f"{path} cannot be read: a size in its header is no size") from reason


def _check_header(path: Path, error: type[ManylabelError]) -> None:
    with open_plain(path, error) as file:
        start = file.read(8)
        size = path.stat().st_size
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(size - 8, LONGEST_HEADER):
            raise error(f"{path} cannot be read: it is cut off, or no safetensors file")
        header: Any = parse_json(file.read(length), f"{path}, header", error, advice="")
    if not isinstance(header, dict) or len(header) > MOST_TENSORS:
        raise error(f"{path} cannot be read: its header lists no tensors, or too many")
    for name, entry in header.items():
        if name != "__metadata__" and (len(name) > LONGEST_NAME or not isinstance(entry, dict)):
            raise error(f"{path} cannot be read: its header says nothing of {name!r:.60}")


def read_saved(path: Path, error: type[ManylabelError] = CheckpointError) -> Any:
    """What torch.save wrote, without running code; it takes about as much memory as the file is large."""
    with open_plain(path, error) as file:
        try:
            _check_saved(file, path.stat().st_size)
        except (zipfile.BadZipFile, ValueError, LookupError, NotImplementedError) as reason:
            raise error(f"{path} cannot be read: {reason}") from reason
    return torch.load(path, map_location="cpu", weights_only=True)


def _check_saved(file: BinaryIO, size: int) -> None:
    """Torch packs nothing, so that the file holds all that is loaded; and what describes the tensors makes nothing else."""
    if not zipfile.is_zipfile(file):  # as torch wrote before 1.6, and takes no more from than there is
        return
    with zipfile.ZipFile(file) as saved:
        entries = saved.infolist()
        if len(entries) > MOST_TENSORS or sum(entry.file_size for entry in entries) > size:
            raise ValueError("it would take more than the file is large")
        for entry in entries:
            if entry.filename.endswith(".pkl"):
                if entry.file_size > LONGEST_HEADER:
                    raise ValueError("it says too much of its tensors")
                if b"bytearray" in saved.read(entry):  # of any length, and the one thing that torch makes of nothing
                    raise ValueError("it asks for memory instead of holding tensors")
