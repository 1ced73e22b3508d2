"""Features of a backbone's frozen part, computed once.

    <cache folder>/features/<key>/facts.json        what it is: backbone, weights, images, how they were prepared
                                  <stage>.bin       the numbers [images, C, H, W], one file per stage
                                  <stage>.json      how far they are, what could not be read, checksums
                                  lock              held while somebody writes; its time is that of the last use

A killed extraction goes on where it was, and a stage that is wanted later joins those that are there. Nothing in the
folder is believed: each time it is opened every block of features is compared with its checksum, and what has changed
is computed again, in the batches in which it was computed before, so that it is the same to the bit.
`MANYLABEL_CACHE` moves the folder. An augmented view of the images is a cache of its own: features of random crops,
say, drawn once and for all.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from manylabel.cache.engine_choice import choose_engine
from manylabel.cache.key import FORMAT, View, cache_key, file_names, weights_fingerprint
from manylabel.cache.stage_file import StageFile
from manylabel.cache_folder import cache_folder
from manylabel.console import counting
from manylabel.data.augment import training_transform
from manylabel.data.contents import contents
from manylabel.data.dataset import ImageDataset, pixel_loader
from manylabel.data.sampler import EpochBatches
from manylabel.data.table import Table
from manylabel.data.transform import evaluation_transform, needed_side
from manylabel.engine import Engine
from manylabel.error import CheckpointError, TrainingError
from manylabel.features import Features
from manylabel.model import TaskModel
from manylabel.preprocess import Preprocess
from manylabel.stop import Stopped, StopRequest, unless_stopped
from manylabel.storage.atomic import sweep, write_json
from manylabel.storage.own_file import make_way, open_own, own_folder, read_own_json

BATCH = 16  # fastest on a CPU; the same batches on every run give the same bits
SAVE_EVERY = 32  # batches between two notes of progress
HEADROOM = 1.05


@dataclass(frozen=True)
class FeatureCache:
    """Features of every image of a table."""

    files: dict[str, StageFile]  # by the name that the stage has in Features

    def read(self, rows: np.ndarray) -> dict[str, Tensor]:
        """Stage → [len(rows), C, H, W]"""
        return {name: file.read(rows) for name, file in self.files.items()}

    def features(self, rows: np.ndarray) -> Features:
        return Features(self.read(rows))

    @property
    def folder(self) -> Path:
        return next(iter(self.files.values())).folder

    @property
    def count(self) -> int:
        """Images of the table, readable or not."""
        return next(iter(self.files.values())).images

    @property
    def bad(self) -> dict[int, str]:
        """Images that could not be read, and why."""
        return {row: reason for file in self.files.values() for row, reason in file.bad.items()}


@dataclass(frozen=True)
class Announcement:
    """What is about to be written, told before it is."""

    folder: Path
    images: int
    done: int
    bytes: int
    runtime: str = ""  # what computes the rest
    damaged: int = 0  # images whose features had changed since they were written


def cached_features(
    model: TaskModel,
    table: Table,
    preprocess: Preprocess,
    *,
    dtype: str = "float32",
    view: View | None = None,
    runtime: str = "auto",
    workers: int = 2,
    device: torch.device | str = "cpu",
    stop: StopRequest | None = None,
    announce: Callable[[Announcement], None] = lambda _: None,
    advance: Callable[[int], None] = lambda _: None,
) -> FeatureCache:
    """The features of the table's images: from disk when they are there, computed (or completed) otherwise."""
    weights = weights_fingerprint(model)
    with counting("looking at images", len(table)) as seen:
        images = contents(table.source, [str(key) for key in table.keys], stop, seen)
    folder = cache_folder() / "features" / cache_key(weights, images, preprocess, dtype, view)
    try:
        own_folder(folder)
        with alone(folder):
            sweep(folder)
            _describe(folder, model, weights, table, preprocess, dtype, view)
            files, damaged = _open(folder, model, preprocess, len(table), dtype, device)
            wanted = _wanted(list(files.values()), len(table))
            done = len(table) - int(wanted.sum())
            size = sum(file.bytes for file in files.values())
            if done < len(table):
                engine = choose_engine(runtime, model, preprocess, device, len(table))
                announce(Announcement(folder, len(table), done, size, engine.name, damaged))
                _extract(engine, table, preprocess, view, files, wanted, workers, stop, advance)
            else:
                announce(Announcement(folder, len(table), done, size))
            for file in files.values():
                file.open()  # now, while nobody else may remove it
    except OSError as error:
        raise CheckpointError(
            f"cannot write features to {folder} ({error.strerror or error}); free some space (manylabel cache prune), "
            "choose another place with the variable MANYLABEL_CACHE, or do without: --set train.cache=off"
        ) from error
    return FeatureCache(files)


def _describe(
    folder: Path, model: TaskModel, weights: str, table: Table, preprocess: Preprocess, dtype: str, view: View | None
) -> None:
    """facts.json, or the assurance that the one that is there is about the same thing."""
    path = folder / "facts.json"
    facts: dict[str, object] = {
        "format": FORMAT,
        "backbone": model.backbone.name,
        "weights": weights,
        "preprocess": asdict(preprocess),
        "table": table.name,
        "images": len(table),
        "dtype": dtype,
        "view": None if view is None else asdict(view),
    }
    make_way(path)
    try:
        known = read_own_json(path)
    except (OSError, ValueError):
        known = {}
    if known.get("weights", weights) != weights:
        raise CheckpointError(
            f"{folder} holds features of other weights than its name says, so somebody has moved it there; "
            f"remove it: manylabel cache prune {folder.name}"
        )
    if known != json.loads(json.dumps(facts)):
        write_json(path, facts)


def _open(
    folder: Path, model: TaskModel, preprocess: Preprocess, images: int, dtype: str, device: torch.device | str
) -> tuple[dict[str, StageFile], int]:
    """A file for each stage that the model wants to be kept: the one that is there, or a new one. And of how many images
    something was there that cannot be used."""
    names = file_names(model)
    found = {name: StageFile.find(folder, file) for name, file in names.items()}
    files = {name: file for name, file in found.items() if file and (file.images, file.dtype) == (images, dtype)}
    lost = {row for file in files.values() for row in file.damaged()}
    missing = [name for name in names if name not in files]
    if not missing:
        return files, len(lost)
    unusable = any(os.path.lexists(folder / f"{names[name]}.json") for name in missing)
    with torch.inference_mode():
        blank = torch.zeros(1, 3, preprocess.size, preprocess.size, device=device)
        shapes = {name: tuple(stage.shape[1:]) for name, stage in model.eval().features(blank).stages.items()}
    new = [StageFile(folder, names[name], images, shapes[name], dtype) for name in missing]
    _check_space(folder, sum(file.bytes for file in new), dtype)
    files |= {name: StageFile.create(folder, names[name], images, shapes[name], dtype) for name in missing}
    return {name: files[name] for name in names}, images if unusable else len(lost)


def _wanted(files: list[StageFile], images: int) -> np.ndarray:
    """[images] bool: those to compute, in whole batches: what a file does not have yet, and what is damaged in it."""
    batch = np.arange(images) // BATCH
    wanted = np.zeros(images, bool)
    for file in files:
        wanted |= np.isin(batch, np.array(sorted(file.lost), np.int64) // BATCH)
        if not file.complete:
            wanted |= batch >= file.done // BATCH
    return wanted


def _check_space(folder: Path, needed: int, dtype: str) -> None:
    free = shutil.disk_usage(folder).free
    if needed * HEADROOM > free:
        half = ", halve them with --set train.cache_dtype=float16" if dtype == "float32" else ""
        raise CheckpointError(
            f"features need {needed / 1e9:.2f} GB in {folder}, where {free / 1e9:.2f} GB are free; make room with "
            f"manylabel cache prune, choose another place with the variable MANYLABEL_CACHE{half}, or do without: "
            "--set train.cache=off"
        )


def _extract(
    engine: Engine,
    table: Table,
    preprocess: Preprocess,
    view: View | None,
    files: dict[str, StageFile],
    wanted: np.ndarray,
    workers: int,
    stop: StopRequest | None,
    advance: Callable[[int], None],
) -> None:
    """The features of the images that are wanted, for the files that are not whole."""
    files = {name: file for name, file in files.items() if file.lost or not file.complete}
    rows = np.flatnonzero(wanted)
    batches = EpochBatches(rows, BATCH, shuffle=False)
    if view is None:
        dataset = ImageDataset(table, evaluation_transform(preprocess), needed_side(preprocess))
    else:
        transform, side = training_transform(preprocess, view.augment), needed_side(preprocess, view.augment)
        dataset = ImageDataset(table, transform, side, view.seed, random=True)
        batches.epoch = view.number  # so that each view draws other numbers
    row_of = {str(key): row for row, key in enumerate(table.keys)}
    done = len(table) - len(rows)
    advance(done)
    for number, batch in enumerate(unless_stopped(pixel_loader(dataset, batches, workers), stop), start=1):
        found = engine(batch.pixels.numpy()) if len(batch) else {}
        features = {name: torch.from_numpy(stage) for name, stage in found.items()}
        _refuse_what_is_no_number(features, [str(table.keys[row]) for row in batch.rows.tolist()])
        bad = {row_of[key]: reason for key, reason in batch.bad}
        for name, file in files.items():
            if len(batch):
                file.write(batch.rows.numpy(), features[name])
            file.leave_out(bad)
            file.done = max(file.done, *batch.rows.add(1).tolist(), *(row + 1 for row in bad))
            file.runtime = engine.name
        done += len(batch) + len(bad)
        advance(len(batch) + len(bad))
        if number % SAVE_EVERY == 0 and done < len(table):
            _note(files)
        if stop is not None and stop.signal is not None:
            break
    _note(files)
    if done < len(table) and stop is not None and stop.signal is not None:
        raise Stopped(f"stopped after the features of {done} of {len(table)} images; they are kept", stop.signal)


def _refuse_what_is_no_number(features: dict[str, Tensor], keys: list[str]) -> None:
    """Infinities and NaN come from the backbone, not from how the head learns; say of which image."""
    for name, stage in features.items():
        fine = torch.isfinite(stage).flatten(1).all(1).tolist()
        named = [key for key, is_fine in zip(keys, fine, strict=True) if not is_fine]
        if named:
            more = f" and {len(named) - 3} more" if len(named) > 3 else ""
            raise TrainingError(
                f"the backbone gives features ({name}) that are not numbers for {', '.join(named[:3])}{more}; "
                "look at these images and leave them out, or use other weights: --set backbone.weights=…"
            )


def _note(files: dict[str, StageFile]) -> None:
    for file in files.values():
        file.note()


@contextmanager
def alone(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Wait while another process works on the same features; without waiting, say whether nobody does."""
    try:
        import fcntl
    except ImportError:  # no such lock on this system: two runs at once would only do the same work twice
        yield True
        return
    while True:
        make_way(folder / "lock")
        with open_own(folder / "lock", writable=True, create=True) as lock:
            if wait:
                os.utime(lock.fileno())
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            if _is_still(folder / "lock", lock.fileno()):
                yield True
                return
        own_folder(folder)  # it was thrown away while we waited


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except OSError:
        return False
