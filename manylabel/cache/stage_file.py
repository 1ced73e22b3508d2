"""One stage's features of a number of images: <name>.bin holds the numbers, <name>.json how far they are.

The numbers lie in blocks of whole images, about BLOCK_BYTES each, and the JSON holds a CRC-32 of every block (and one
of itself). All blocks are looked at once each time the file is opened for reading, one after the other, and not again
with each batch: that costs one pass over the file.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from manylabel.error import CheckpointError
from manylabel.storage.atomic import write_json
from manylabel.storage.own_file import is_plain_file, make_way, new_own, open_own, read_own_json


@dataclass(frozen=True)
class Stored:
    """How numbers of a dtype lie in the file."""

    torch: torch.dtype
    numpy: str  # bfloat16 is none of numpy's own: the same bits
    bits: str
    special: int  # bits of the exponent: all of them are set in infinities and in what is no number


STORED = {
    "float32": Stored(torch.float32, "float32", "uint32", 0x7F80_0000),
    "float16": Stored(torch.float16, "float16", "uint16", 0x7C00),
    "bfloat16": Stored(torch.bfloat16, "int16", "uint16", 0x7F80),
}
LARGEST_ROUNDING = 0.01  # of a batch's features, relative to their size
BLOCK_BYTES = 1 << 18  # stays in a core's own memory between two looks at it


@dataclass
class StageFile:
    """Features [images, *shape], written from the first image to the last."""

    folder: Path
    name: str
    images: int
    shape: tuple[int, ...]
    dtype: str
    done: int = 0
    bad: dict[int, str] = field(default_factory=dict)  # images that could not be read, and why
    rounding: float = 0.0  # largest relative error of a batch from storing it in this dtype
    runtime: str = ""  # what computed the last of them
    block: int = 1  # images of a block
    sums: list[int] = field(default_factory=list)  # CRC-32 of each block, as far as its images are done

    def __post_init__(self) -> None:
        self._mapped: np.ndarray | None = None
        self._summed = self.done  # images that the sums are about
        self._written: set[int] = set()  # blocks that were written since
        self.lost: set[int] = set()  # images that are damaged, until they are written again

    @classmethod
    def find(cls, folder: Path, name: str) -> StageFile | None:
        """What is there under this name; None when there is nothing that could be used."""
        try:
            facts = read_own_json(folder / f"{name}.json")
            if facts.pop("crc32", None) != _sum_of(facts):
                return None
            bad = {int(row): str(reason) for row, reason in facts.pop("bad").items()}
            sums = np.frombuffer(bytes.fromhex(facts.pop("sums")), "<u4").tolist()
            found = cls(folder, name, bad=bad, sums=sums, shape=tuple(facts.pop("shape")), **facts)
            return found if found._fits() else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None

    def _fits(self) -> bool:
        """Whether the facts make sense, and the file is as large as they say."""
        numbers = (self.images, self.done, self.block, *self.shape)
        return (
            all(type(number) is int and 0 <= number < 1 << 40 for number in numbers)
            and self.dtype in STORED
            and self.block > 0
            and self.done <= self.images
            and len(self.sums) == -(-self.done // self.block)
            and all(0 <= row < self.images for row in self.bad)
            and is_plain_file(self.path)
            and self.path.stat().st_size == self.bytes
        )

    @classmethod
    def create(cls, folder: Path, name: str, images: int, shape: tuple[int, ...], dtype: str) -> StageFile:
        made = cls(folder, name, images, shape, dtype)
        made.block = max(1, BLOCK_BYTES // max(1, made.image_bytes))
        make_way(made.facts)
        made.facts.unlink(missing_ok=True)
        with new_own(made.path) as file:
            _reserve(file, made.bytes)
        made.note()
        return made

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.bin"

    @property
    def facts(self) -> Path:
        return self.folder / f"{self.name}.json"

    @property
    def image_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * STORED[self.dtype].torch.itemsize

    @property
    def bytes(self) -> int:
        return self.images * self.image_bytes

    @property
    def complete(self) -> bool:
        return self.done >= self.images

    def open(self, writable: bool = False) -> np.ndarray:
        """The numbers as they are stored, mapped into memory."""
        if self._mapped is None or (writable and not self._mapped.flags.writeable):
            mode: Any = "r+" if writable else "r"
            with open_own(self.path, writable=writable) as file:
                self._mapped = np.memmap(file, STORED[self.dtype].numpy, mode, shape=(self.images, *self.shape))
        return self._mapped

    def write(self, rows: np.ndarray, values: Tensor) -> None:
        """values [len(rows), *shape], rounded to how they are stored; what does not survive that is an error."""
        kept = values.to(STORED[self.dtype].torch)
        if self.dtype != "float32":
            size = values.norm().item()
            error = (kept.float() - values).norm().item() / size if size else 0.0
            if not error <= LARGEST_ROUNDING:  # also when it is not a number
                why = f"they lose {error:.1%}" if np.isfinite(error) else "some are too large"
                raise CheckpointError(
                    f"features ({self.name}) do not fit {self.dtype}: {why}; use --set train.cache_dtype=float32"
                )
            self.rounding = max(self.rounding, error)
        self.open(writable=True)[rows] = (kept.view(torch.int16) if self.dtype == "bfloat16" else kept).numpy()
        self._written.update((rows // self.block).tolist())
        self.lost.difference_update(rows.tolist())
        for row in rows.tolist():
            self.bad.pop(row, None)  # an image may have become readable since

    def leave_out(self, bad: dict[int, str]) -> None:
        """Images that cannot be read, and why."""
        for row, reason in bad.items():
            self.open(writable=True)[row] = 0
            self._written.add(row // self.block)
            self.lost.discard(row)
            self.bad[row] = reason

    def note(self) -> None:
        """Say on disk how far it is, with the sums of the blocks that are new."""
        if self._written:
            self.open(writable=True).flush()  # type: ignore[attr-defined]
        count = -(-self.done // self.block)
        self.sums += [0] * (count - len(self.sums))
        half_mended = {row // self.block for row in self.lost}  # they keep the sum that says so
        for number in (self._written | set(range(self._summed // self.block, count))) - half_mended:
            self.sums[number] = zlib.crc32(self._bits(number).data)
        self._summed, self._written = self.done, set()
        facts = {key: value for key, value in asdict(self).items() if key not in ("folder", "name")}
        facts |= {"bad": {str(row): reason for row, reason in self.bad.items()}, "shape": list(self.shape)}
        facts["sums"] = np.array(self.sums, "<u4").tobytes().hex()
        make_way(self.facts)
        write_json(self.facts, {**facts, "crc32": _sum_of(facts)})

    def read(self, rows: np.ndarray) -> Tensor:
        """Features of these images, as float32. [len(rows), *shape]"""
        order = np.argsort(rows, kind="stable")  # read the file forwards
        values = torch.from_numpy(self.open()[rows[order]])
        values = values.view(torch.bfloat16) if self.dtype == "bfloat16" else values
        return values.float()[np.argsort(order, kind="stable")]

    def damaged(self) -> set[int]:
        """Looks at every block: which images are done, but their block has changed since it was written, or holds what
        are no numbers. They count as lost from here on."""
        special = STORED[self.dtype].special
        room = np.empty(0)
        for number, told in enumerate(self.sums):
            bits = self._bits(number)
            room = room if len(room) >= len(bits) else np.empty_like(bits)
            exponents = np.bitwise_and(bits, bits.dtype.type(special), out=room[: len(bits)])
            if zlib.crc32(bits.data) != told or int(exponents.max(initial=0)) == special:
                self.lost.update(range(*self._rows_of(number)))
        return self.lost

    def damage(self) -> str | None:
        """What is wrong with it, if anything."""
        lost = len(self.damaged())
        if lost:
            return f"{self.path.name} has changed since it was written ({lost} of {self.images} images)"
        return None if self.complete else f"only {self.done} of {self.images} images are done"

    def _rows_of(self, block: int) -> tuple[int, int]:
        """The images of a block that are done, as first and end."""
        return block * self.block, min((block + 1) * self.block, self.done)

    def _bits(self, block: int) -> np.ndarray:
        """What is stored in a block, as one row of unsigned numbers."""
        first, end = self._rows_of(block)
        return self.open()[first:end].reshape(-1).view(STORED[self.dtype].bits)


def _sum_of(facts: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode())


def _reserve(file: BinaryIO, size: int) -> None:
    """Take the space now: a memory-mapped file on a disk that fills up later would end the process without a word."""
    if hasattr(os, "posix_fallocate") and size:
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)
