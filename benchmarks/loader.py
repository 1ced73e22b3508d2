"""Images per second from JPEG files to 224-px batches: our loader against torchvision's ImageFolder and DataLoader.

Both decode the same files with the same worker count into the same shape. The bare decoder's rate (JPEG to pixels in
memory, one process, no resizing) is given beside them.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from torch.utils.data import DataLoader

from benchmarks.table import Row, interleave
from manylabel.data.dataset import ImageDataset, pixel_loader
from manylabel.data.sampler import EpochBatches
from manylabel.data.scenes import scene_image
from manylabel.data.source import FileSource
from manylabel.data.table import Table
from manylabel.data.transform import evaluation_transform, needed_side
from manylabel.labels import LabelSpace
from manylabel.preprocess import Preprocess

SIZE = 224
BATCH = 64
WORKERS = 2
CASES = {"640×480": (640, 480), "1600×1200": (1600, 1200), "256×256": (256, 256)}


def run(quick: bool = False) -> list[Row]:
    """One row per photo size, and one for the share of the bare decode rate that we reach."""
    count = 128 if quick else 640
    rows = []
    for case, size in list(CASES.items())[: 1 if quick else None]:
        with tempfile.TemporaryDirectory() as folder:
            _write_photos(Path(folder), size, count)
            rows += _measure(Path(folder), case, count, repeats=1 if quick else 5)
    return rows


def _write_photos(folder: Path, size: tuple[int, int], count: int) -> None:
    """Scenes enlarged to the size of photos, with a camera's grain, as JPEG of ordinary quality."""
    (folder / "all").mkdir()
    rng = np.random.default_rng(0)
    for i in range(32):
        picture = Image.fromarray(scene_image(0, i, 256)).resize(size, Image.Resampling.BICUBIC)
        grain = rng.normal(0, 6, (size[1], size[0], 3))
        pixels = np.clip(np.asarray(picture) + grain, 0, 255).astype(np.uint8)
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=90)
        for copy in range(i, count, 32):
            (folder / "all" / f"{copy:05d}.jpg").write_bytes(buffer.getvalue())


def _measure(folder: Path, case: str, count: int, repeats: int) -> list[Row]:
    ours, peer = partial(_drain, _ours(folder, count), count), partial(_drain, _theirs(folder), count)
    seconds, peer_seconds = interleave(ours, peer, repeats)
    bare = _bare_rate(folder)
    rate, peer_rate = count / seconds, count / peer_seconds
    what = f"{case} JPEG → {SIZE} px, {WORKERS} workers"
    peers = ("torchvision ImageFolder + DataLoader", peer_rate), ("bare JPEG decoding at full size, one core", bare)
    return [Row("loader", what, rate, theirs, rate / theirs, "images/s", name) for name, theirs in peers]


def _ours(folder: Path, count: int) -> Callable[[], object]:
    keys = np.array(sorted(f"all/{path.name}" for path in (folder / "all").iterdir()))
    labels = LabelSpace(("any",))
    table = Table("photos", FileSource(folder), keys, labels, np.ones((count, 1), np.int8))
    preprocess = Preprocess(SIZE, (0.5,) * 3, (0.5,) * 3)
    dataset = ImageDataset(table, evaluation_transform(preprocess), needed_side(preprocess))
    loader = pixel_loader(dataset, EpochBatches(np.arange(count), BATCH, shuffle=False), WORKERS)
    return lambda: (len(batch) for batch in loader)


def _theirs(folder: Path) -> Callable[[], object]:
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    transform = transforms.Compose([transforms.Resize((SIZE, SIZE)), transforms.PILToTensor()])
    loader = DataLoader(
        ImageFolder(str(folder), transform), BATCH, num_workers=WORKERS, persistent_workers=True, prefetch_factor=4
    )
    return lambda: (len(images) for images, _ in loader)


def _drain(batches: Callable[[], object], count: int) -> None:
    seen = sum(batches())  # type: ignore[call-overload]
    if seen != count:
        raise AssertionError(f"{seen} images instead of {count}")


def _bare_rate(folder: Path) -> float:
    """Images per second of libjpeg-turbo alone, as Pillow calls it: bytes in memory to full-size pixels."""
    files = [path.read_bytes() for path in sorted((folder / "all").iterdir())[:64]]
    started = time.perf_counter()
    for data in files:
        Image.open(io.BytesIO(data)).load()
    return len(files) / (time.perf_counter() - started)
