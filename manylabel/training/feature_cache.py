"""Features of a frozen backbone, computed once: memory-mapped files keyed by weights, preprocessing, images and stages.

    <cache folder>/<key>/facts.json       what it is: stages, shapes, dtype, images, where the weights came from
                         <stage>.bin      the numbers [images, C, H, W], one file per stage
                         progress.json    how many images are done, and which could not be read

A killed extraction goes on where progress.json says. `MANYLABEL_CACHE` moves the folder.
An augmented view of the images is a cache of its own: features of random crops, say, drawn once and for all.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import PIL
import torch
import torchvision

from manylabel.atomic import sweep, write_json
from manylabel.cache_folder import cache_folder
from manylabel.config import AugmentConfig
from manylabel.data.dataset import ImageDataset, pixel_loader
from manylabel.data.sampler import EpochBatches
from manylabel.data.table import Table
from manylabel.data.transform import evaluation_transform, needed_side, training_transform
from manylabel.error import CheckpointError
from manylabel.features import Features
from manylabel.model import Model
from manylabel.preprocess import Preprocess
from manylabel.training.stop import Stopped, StopRequest, unless_stopped
from manylabel.version import VERSION

FORMAT = 2
BATCH = 16  # fastest on a CPU; the same batches on every run give the same bits
SAVE_EVERY = 32  # batches between two notes of progress
HEADROOM = 1.05


@dataclass(frozen=True)
class FeatureCache:
    """Features of every image of a table. Rows that could not be read are in `bad`."""

    folder: Path
    arrays: dict[str, np.ndarray]  # stage → [n, C, H, W], memory-mapped
    bad: dict[int, str]

    def read(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Stage → [len(rows), C, H, W], as they are stored."""
        order = np.argsort(rows, kind="stable")  # read the file forwards
        back = np.argsort(order, kind="stable")
        return {name: array[rows[order]][back] for name, array in self.arrays.items()}

    def features(self, rows: np.ndarray) -> Features:
        stages = {name: torch.from_numpy(np.ascontiguousarray(part)) for name, part in self.read(rows).items()}
        return Features({name: stage.float() for name, stage in stages.items()})

    @property
    def count(self) -> int:
        """Images of the table, readable or not."""
        return len(next(iter(self.arrays.values())))


@dataclass(frozen=True)
class View:
    """One way to vary the images: which augmentation, and the how-manieth drawing of it."""

    augment: AugmentConfig
    number: int  # 1, 2, …
    seed: int


@dataclass(frozen=True)
class Announcement:
    """What is about to be written, told before it is."""

    folder: Path
    images: int
    done: int
    bytes: int
    shapes: dict[str, tuple[int, ...]]


def weights_fingerprint(model: Model) -> str:
    digest = hashlib.sha256(model.backbone.name.encode())
    for name, tensor in sorted(model.backbone.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).numpy().tobytes())
    return digest.hexdigest()


def cache_key(model: Model, table: Table, preprocess: Preprocess, dtype: str, view: View | None = None) -> str:
    what: dict[str, Any] = {
        "format": FORMAT,
        "weights": weights_fingerprint(model),
        "preprocess": asdict(preprocess),
        "stages": list(model.backbone.stages),
        "pooled": model.pooled,
        "dtype": dtype,
        "code": [VERSION, PIL.__version__],  # who decodes and draws
    }
    if view is not None:
        what["view"] = asdict(view)
        what["code"].append(torchvision.__version__)  # who augments
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode())
    for key in table.keys:
        digest.update(table.source.stamp(str(key)).encode() + b"\0")
    return digest.hexdigest()[:32]


def cached_features(
    model: Model,
    table: Table,
    preprocess: Preprocess,
    *,
    dtype: str = "float32",
    view: View | None = None,
    workers: int = 2,
    device: torch.device | str = "cpu",
    stop: StopRequest | None = None,
    announce: Callable[[Announcement], None] = lambda _: None,
    advance: Callable[[int], None] = lambda _: None,
) -> FeatureCache:
    """The features of the table's images: from disk when they are there, computed (or completed) otherwise."""
    folder = cache_folder() / "features" / cache_key(model, table, preprocess, dtype, view)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            sweep(folder)
            shapes = _shapes(model, preprocess, folder, device)
            arrays, progress = _open(folder, shapes, len(table), dtype, model, table)
            size = sum(array.nbytes for array in arrays.values())
            announce(Announcement(folder, len(table), progress["done"], size, shapes))
            if progress["done"] < len(table):
                _extract(model, table, preprocess, view, arrays, progress, folder, workers, device, stop, advance)
    except OSError as error:
        raise CheckpointError(
            f"cannot write features to {folder} ({error.strerror or error}); free some space, choose another place with "
            "the variable MANYLABEL_CACHE, or do without: --set train.cache=off"
        ) from error
    return FeatureCache(folder, arrays, {int(row): reason for row, reason in progress["bad"].items()})


def _shapes(
    model: Model, preprocess: Preprocess, folder: Path, device: torch.device | str
) -> dict[str, tuple[int, ...]]:
    """Shape of one image's features per stage; asks the model once and remembers."""
    try:
        shapes = json.loads((folder / "facts.json").read_text(encoding="utf-8"))["shapes"]
        return {name: tuple(shape) for name, shape in shapes.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass  # the first time, or damaged: ask
    with torch.inference_mode():
        blank = torch.zeros(1, 3, preprocess.size, preprocess.size, device=device)
        return {name: tuple(stage.shape[1:]) for name, stage in model.eval().features(blank).stages.items()}


def _open(
    folder: Path, shapes: dict[str, tuple[int, ...]], images: int, dtype: str, model: Model, table: Table
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    files = {name: folder / f"{name}.bin" for name in shapes}
    sizes = {name: images * int(np.prod(shape)) * np.dtype(dtype).itemsize for name, shape in shapes.items()}
    state = folder / "progress.json"
    progress = _progress(state)
    if progress is None or not all(p.is_file() and p.stat().st_size == sizes[name] for name, p in files.items()):
        progress = {"done": 0, "bad": {}}
        state.unlink(missing_ok=True)
        _check_space(folder, sum(sizes.values()))
        about = {"backbone": model.backbone.name, "images": images, "table": table.name, "dtype": dtype}
        write_json(folder / "facts.json", {"format": FORMAT, "shapes": shapes, **about})
        for name, path in files.items():
            with open(path, "wb") as file:
                _reserve(file, sizes[name])
    mode: Any = "r" if progress["done"] >= images else "r+"
    arrays: dict[str, np.ndarray] = {
        name: np.memmap(path, dtype=dtype, mode=mode, shape=(images, *shapes[name])) for name, path in files.items()
    }
    return arrays, progress


def _progress(path: Path) -> dict[str, Any] | None:
    """How far an extraction came; None when that cannot be known, so that it starts again."""
    try:
        progress = json.loads(path.read_text(encoding="utf-8"))
        return {"done": int(progress["done"]), "bad": dict(progress["bad"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _reserve(file: BinaryIO, size: int) -> None:
    """Take the space now: a memory-mapped file on a disk that fills up later would end the process without a word."""
    if hasattr(os, "posix_fallocate") and size:
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        file.truncate(size)


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed * HEADROOM > free:
        raise CheckpointError(
            f"features need {needed / 1e9:.2f} GB in {folder}, where {free / 1e9:.2f} GB are free; choose another place "
            "with the variable MANYLABEL_CACHE, halve them with --set train.cache_dtype=float16, or do without: "
            "--set train.cache=off"
        )


@torch.inference_mode()
def _extract(
    model: Model,
    table: Table,
    preprocess: Preprocess,
    view: View | None,
    arrays: dict[str, np.ndarray],
    progress: dict[str, Any],
    folder: Path,
    workers: int,
    device: torch.device | str,
    stop: StopRequest | None,
    advance: Callable[[int], None],
) -> None:
    model.eval()
    batches = EpochBatches(np.arange(len(table)), BATCH, shuffle=False)
    if view is None:
        dataset = ImageDataset(table, evaluation_transform(preprocess), needed_side(preprocess))
    else:
        transform, side = training_transform(preprocess, view.augment), needed_side(preprocess, view.augment)
        dataset = ImageDataset(table, transform, side, view.seed, random=True)
        batches.epoch = view.number  # so that each view draws other numbers
    batches.start = progress["done"] // BATCH
    row_of = {str(key): row for row, key in enumerate(table.keys)}
    advance(progress["done"])
    for number, batch in enumerate(unless_stopped(pixel_loader(dataset, batches, workers), stop), start=1):
        if len(batch):
            rows = batch.rows.numpy()
            for name, stage in model.features(batch.pixels.to(device)).stages.items():
                values = stage.float().cpu().numpy()
                with np.errstate(over="ignore"):
                    arrays[name][rows] = values
                if arrays[name].dtype == np.float16 and not np.isfinite(arrays[name][rows]).all():
                    raise CheckpointError(
                        f"features of {model.backbone.name} ({name}) do not fit float16; use --set train.cache_dtype=float32"
                    )
        progress["bad"].update({str(row_of[key]): reason for key, reason in batch.bad})
        seen = len(batch) + len(batch.bad)
        progress["done"] += seen
        advance(seen)
        finished = progress["done"] >= len(table)
        asked = stop is not None and stop.signal is not None
        if finished or number % SAVE_EVERY == 0:
            _note(folder, arrays, progress)
        if asked:
            break
    _note(folder, arrays, progress)
    if progress["done"] < len(table) and stop is not None and stop.signal is not None:
        message = f"stopped after the features of {progress['done']} of {len(table)} images; they are kept"
        raise Stopped(message, stop.signal)


def _note(folder: Path, arrays: dict[str, np.ndarray], progress: dict[str, Any]) -> None:
    for array in arrays.values():
        array.flush()  # type: ignore[attr-defined]
    write_json(folder / "progress.json", progress)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait while another process works on the same features."""
    try:
        import fcntl
    except ImportError:  # no such lock on this system: two runs at once would only do the same work twice
        yield
        return
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
