"""One stage's features of a number of images: <name>.bin holds the numbers, <name>.json how far they are."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from manylabel.atomic import sha256, write_json
from manylabel.error import CheckpointError

STORED: dict[str, tuple[torch.dtype, str]] = {  # name → what torch rounds to, and what numpy takes it for
    "float32": (torch.float32, "float32"),
    "float16": (torch.float16, "float16"),
    "bfloat16": (torch.bfloat16, "int16"),  # numpy has none of its own: the same bits
}
LARGEST_ROUNDING = 0.01  # of a batch's features, relative to their size


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
    sha256: str = ""  # of the whole file, once it is done

    @classmethod
    def find(cls, folder: Path, name: str) -> StageFile | None:
        """What is there under this name; None when there is nothing that could be used."""
        try:
            facts = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            bad = {int(row): str(reason) for row, reason in facts.pop("bad").items()}
            found = cls(folder, name, bad=bad, shape=tuple(facts.pop("shape")), **facts)
            return found if found.path.stat().st_size == found.bytes and found.dtype in STORED else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    @classmethod
    def create(cls, folder: Path, name: str, images: int, shape: tuple[int, ...], dtype: str) -> StageFile:
        made = cls(folder, name, images, shape, dtype)
        made.facts.unlink(missing_ok=True)
        with made.path.open("wb") as file:
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
    def bytes(self) -> int:
        return self.images * int(np.prod(self.shape)) * STORED[self.dtype][0].itemsize

    @property
    def complete(self) -> bool:
        return self.done >= self.images

    def open(self) -> np.ndarray:
        """The numbers as they are stored, mapped into memory."""
        if "_mapped" not in self.__dict__:
            mode: Any = "r" if self.complete else "r+"
            self._mapped = np.memmap(self.path, STORED[self.dtype][1], mode, shape=(self.images, *self.shape))
        return self._mapped

    def write(self, rows: np.ndarray, values: Tensor) -> None:
        """values [len(rows), *shape], rounded to how they are stored; what does not survive that is an error."""
        kept = values.to(STORED[self.dtype][0])
        if self.dtype != "float32":
            size = values.norm().item()
            error = (kept.float() - values).norm().item() / size if size else 0.0
            if not error <= LARGEST_ROUNDING:  # also when it is not a number
                why = f"they lose {error:.1%}" if np.isfinite(error) else "some are too large"
                raise CheckpointError(
                    f"features ({self.name}) do not fit {self.dtype}: {why}; use --set train.cache_dtype=float32"
                )
            self.rounding = max(self.rounding, error)
        self.open()[rows] = (kept.view(torch.int16) if self.dtype == "bfloat16" else kept).numpy()

    def note(self) -> None:
        """Say on disk how far it is; a file that is done gets its checksum."""
        self.open().flush()  # type: ignore[attr-defined]
        if self.complete:
            self.sha256 = sha256(self.path)
        facts = {key: value for key, value in asdict(self).items() if key not in ("folder", "name")}
        write_json(self.facts, facts)

    def read(self, rows: np.ndarray) -> Tensor:
        """Features of these images, as float32. [len(rows), *shape]"""
        order = np.argsort(rows, kind="stable")  # read the file forwards
        values = torch.from_numpy(self.open()[rows[order]])
        values = values.view(torch.bfloat16) if self.dtype == "bfloat16" else values
        return values.float()[np.argsort(order, kind="stable")]

    def damage(self) -> str | None:
        """What is wrong with it, if anything."""
        if not self.complete:
            return f"only {self.done} of {self.images} images are done"
        return None if sha256(self.path) == self.sha256 else f"{self.path.name} has changed since it was written"


def _reserve(file: BinaryIO, size: int) -> None:
    """Take the space now: a memory-mapped file on a disk that fills up later would end the process without a word."""
    if hasattr(os, "posix_fallocate") and size:
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)
