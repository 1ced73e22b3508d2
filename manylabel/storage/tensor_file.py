"""Tensors from a .safetensors file: no pickle, and a header that is looked at before anything follows it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

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
