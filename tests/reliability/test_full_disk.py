"""A disk without room, wherever it is met: one sentence with the cause and the file, exit code 2, nothing half written.

The limit on the size of a file (ulimit -f) stands in for the disk: what goes beyond it is refused by the system.
"""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from command import TINY, manylabel, settings
from PIL import Image
from safetensors.torch import save_file

from manylabel.bundle import load_bundle
from manylabel.error import BundleError
from manylabel.run import train
from manylabel.storage.atomic import replacing
from manylabel.training.checkpoint import CheckpointFolder


@contextmanager
def room(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


NOISE = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
WRITERS = {
    "safetensors": lambda path: save_file({"x": torch.randn(10_000)}, path),
    "torch": lambda path: torch.save(torch.randn(10_000), path),
    "numpy": lambda path: np.random.default_rng(0).random(10_000).tofile(path),
    "pillow": lambda path: Image.fromarray(NOISE).save(path, "PNG"),
    "text": lambda path: path.write_text("x" * 100_000),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_a_library_could_not_write_is_said_with_the_cause_and_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x"
    path.write_text("the old one")
    with room(4000), pytest.raises(OSError) as caught, replacing(path) as temporary:
        WRITERS[name](temporary)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert [file.name for file in tmp_path.iterdir()] == ["x"]
    assert path.read_text() == "the old one"


def test_a_mistake_of_ours_stays_one(tmp_path: Path) -> None:
    def wrong(path: Path) -> float:
        path.write_text("half")
        return 1 / 0

    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "x") as temporary:
        wrong(temporary)
    assert not list(tmp_path.iterdir())


def _refused(*arguments: str | Path, cwd: Path, size: int = 60) -> str:
    before = set(cwd.rglob("*"))
    with room(size):
        done = manylabel(*arguments, cwd=cwd)
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 2, said
    assert "Traceback" not in said
    error = next(line for line in done.stderr.splitlines() if line.startswith("error:"))
    assert "file too large" in error.lower()
    new = set(cwd.rglob("*")) - before
    assert not [path for path in new if path.name.endswith(".partial")]
    assert not [path for path in new if path.suffix in (".json", ".html", ".csv", ".png") and "out" in path.name]
    return error


def test_a_full_disk_under_every_command_that_writes(tmp_path: Path, trained: Path, photos_to_look_at: Path) -> None:
    run, data, photo = trained, photos_to_look_at, photos_to_look_at / "images/photo001.jpg"
    other = tmp_path / "other"
    train(str(data), out=other, settings=[*TINY, "train.epochs=1", "data.workers=0", "optimiser.lr=0.1"])
    commands: dict[str, tuple[str | Path, ...]] = {
        "out.json": ("evaluate", run, "--json", "out.json"),
        "out.html": ("evaluate", run, "--report", "out.html"),
        "outp.csv": ("predict", run, photo, "--csv", "outp.csv"),
        "out-ls.json": ("predict", run, photo, "--label-studio", "out-ls.json"),
        "out-r.html": ("report", run, "--out", "out-r.html"),
        "out-f.json": ("data", "check", data, "--json", "out-f.json"),
        "out-f.html": ("data", "check", data, "--html", "out-f.html"),
        "out-s.csv": ("data", "split", data, "--out", "out-s.csv"),
        "out-c.csv": ("data", "convert", data, "out-c.csv", "--to", "csv"),
        "out-coco.json": ("data", "convert", data, "out-coco.json", "--to", "coco"),
        "out-copied": ("data", "convert", data, "out-copied", "--to", "imagefolder", "--images", "copy"),
        "out-why": ("explain", run, photo, "--out", "out-why"),
        "out-compared": ("compare", run, other, "--out", "out-compared"),
    }
    commands["out-hard"] = ("hard", run, "--out", "out-hard")
    assert manylabel("data", "check", data).returncode == 0  # what was looked at is remembered
    for name, command in commands.items():
        assert name in _refused(*command, cwd=tmp_path), name


@pytest.mark.parametrize("size", [0, 2_000, 20_000, 60_000, 200_000])
def test_a_full_disk_while_a_run_is_written(tmp_path: Path, photos_to_look_at: Path, size: int) -> None:
    """From the first file of the run to the weights of its bundle."""
    out = tmp_path / "run"
    options = settings(*TINY, "train.epochs=1", "data.workers=0", "train.cache=off")
    with room(size):
        done = manylabel("train", photos_to_look_at, "--out", out, *options)
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 2, said
    assert "Traceback" not in said
    assert "file too large" in said.lower()
    assert str(out) in said
    assert not list(out.rglob("*.partial"))
    if (out / "bundle").exists():
        with pytest.raises(BundleError):
            load_bundle(out / "bundle")
    if (out / "checkpoints").exists():
        CheckpointFolder(out / "checkpoints").load_latest()
    again = manylabel("train", photos_to_look_at, "--out", out, "--overwrite", *options)
    assert again.returncode == 0, again.stderr
