"""Real files of small runs with something wrong in them, in every loader of what strangers write: read, or refused with an
error of ours that says what is wrong; never a traceback, never gigabytes, never minutes."""

from __future__ import annotations

import json
import os
import platform
import random
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from net.kept_runs import ARCHIVE, unpack
from shard_files import make_samples, tar_files, write_tar
from small_tasks import SMALL
from strangers import MOST_SECONDS, limits, mutated
from test_strangers_bundles import signed

import manylabel as ml
from manylabel.cache.inventory import entries, verify
from manylabel.cache.stage_file import StageFile
from manylabel.compare import compare_runs, compare_tasks, methods_of, read_run
from manylabel.config import DataConfig, load_yaml, make_config, parse
from manylabel.data import file_stamp
from manylabel.data.audit.fingerprint import FINGERPRINT
from manylabel.data.audit.image import FACTS
from manylabel.data.audit.inspection import inspect_table
from manylabel.data.audit.journal import RECORD, Journal
from manylabel.data.bad_images import BadImages
from manylabel.data.fetch.download import Downloaded
from manylabel.data.fetch.manifest import ARCHIVES, LOCK, MANIFEST, Manifest
from manylabel.data.fetch.part import Part
from manylabel.data.read import read_table
from manylabel.data.read.label_file import read_label_file
from manylabel.data.read.split_file import read_parts, write_split_file
from manylabel.data.shard.tar_index import open_index
from manylabel.error import ManylabelError
from manylabel.hard_runs import study_runs
from manylabel.report import report_from_files
from manylabel.report.tasks_page import report_from_run
from manylabel.run.owned import check_folder, is_run
from manylabel.run.trained_images import read_trained
from manylabel.score_file import read_scores
from manylabel.storage.lock import OWNER, check_nobody_says_so
from manylabel.storage.receipt import has_receipt
from manylabel.text.given import Given
from manylabel.training.checkpoint import CheckpointFolder, load_tensors
from manylabel.training.history import read_history

QUICK, NIGHTLY = 12, 1500
RECIPES = Path(ml.__file__).parents[1] / "recipes"


@dataclass(frozen=True)
class Loader:
    """What reads some files of a folder."""

    folder: str  # among those of `homes`
    files: tuple[str, ...]
    read: Callable[[Path], Any]
    sign: Callable[[Path], None] = lambda file: (
        None
    )  # so that what was changed is looked at, and not its checksum alone


def _compare(run: Path) -> None:
    other = run.parent / "other one task"
    compare_runs(methods_of([read_run(run), read_run(other)], ["a", "b"]), resamples=100)


def _compare_tasks(run: Path) -> None:
    keys = ("tasks", "model")
    compare_tasks(methods_of([read_run(run, keys), read_run(run.parent / "other several tasks", keys)], ["a", "b"]))


def _checkpoints(run: Path) -> None:
    folder = CheckpointFolder(run / "checkpoints")
    folder.load_latest()
    folder.load_best()


def _recipe(folder: Path) -> None:
    for path in folder.glob("*.yaml"):
        make_config(str(path))


def _evaluated(run: Path) -> None:
    parse(DataConfig, load_yaml(run / "config.yaml").get("data") or {})


def _lists(folder: Path) -> None:
    read_label_file(folder / "labels.json")
    read_label_file(folder / "labels.yaml")
    read_parts(folder / "split.csv")
    BadImages(9, 1.0, folder / "bad_images.csv").recall()


def _run(run: Path) -> None:
    is_run(run)
    check_folder(run, [], overwrite=True)


def _trained(run: Path) -> None:
    known = read_trained(run)
    if known is not None:
        known.find(np.zeros(3, FINGERPRINT))


@contextmanager
def _cache(folder: Path) -> Iterator[None]:
    with mock.patch.dict(os.environ, {"MANYLABEL_CACHE": str(folder)}):
        yield


def _features(folder: Path) -> None:
    with _cache(folder):
        for entry in entries():
            entry.plain()
            verify(entry)
    found = StageFile.find(folder / "features" / KEY, "final-mean")
    if found is not None and found.images == 40 and found.shape == (8, 1, 1):  # as whoever opens it asks
        found.damaged()
        found.read(np.array([0, 39, 3]))


def _sign_stage(file: Path) -> None:
    with suppress(ValueError, AttributeError, RecursionError):
        facts = json.loads(file.read_bytes())
        facts.pop("crc32", None)
        facts["crc32"] = zlib.crc32(json.dumps(facts, sort_keys=True).encode())
        file.write_text(json.dumps(facts))


def _shards(folder: Path) -> None:
    with _cache(folder):
        index = open_index(folder / "photos.tar")
        list(index.all_names())
        for name in ("photo000.jpg", "photo003.json", "missing.jpg"):
            place = index.find(name)
            assert place is None or index.name(place) == name
        [index.is_cut(i) for i in range(len(index))]


def _sign_index(file: Path) -> None:
    line, _, body = file.read_bytes().partition(b"\n")
    with suppress(ValueError, TypeError, RecursionError):
        facts = json.loads(line)
        facts["crc32"] = zlib.crc32(body)
        file.write_bytes(json.dumps(facts).encode() + b"\n" + body)


def _journal(folder: Path) -> None:
    with _cache(folder):
        known = Journal(read_table(DataConfig(path=str(folder / "photos"))))
        known.get(np.zeros((), FACTS)["stamp"])


def _sign_journal(file: Path) -> None:
    data = file.read_bytes()
    records = np.frombuffer(bytearray(data[: len(data) // RECORD.itemsize * RECORD.itemsize]), RECORD)
    records["checksum"] = [zlib.crc32(row.tobytes()) for row in records["facts"]]
    file.write_bytes(records.tobytes())


def _fetched(folder: Path) -> None:
    manifest = Manifest(folder, "toy", {"splits": "all"})
    manifest.unpacked("toy.tar")
    manifest.remembered("toy.tar")
    assert isinstance(manifest.complete, bool)
    part = Part(folder / ARCHIVES / "toy.tar", "md5")
    part.resume()
    part.belongs_to(part.version)


KEY = "0" * 32
BUNDLE = ("weights.safetensors", "labels.json", "preprocess.json", "config.yaml", "checksums.json")
LOADERS: dict[str, Loader] = {
    "a bundle": Loader("one task/bundle", BUNDLE, lambda path: ml.load_bundle(path)),
    "a bundle of several tasks": Loader(
        "several tasks/bundle",
        (
            *("weights.safetensors", "tasks/labels/labels.json", "tasks/objects/labels.json"),
            *("tasks/objects/preprocess.json", "config.yaml", "checksums.json"),
        ),
        ml.Predictor.load,
    ),
    "an earlier bundle of several tasks": Loader(
        "earlier",
        ("weights.safetensors", "tasks.json", "config.yaml", "checksums.json"),
        ml.Predictor.load,
    ),
    "a report": Loader("one task", ("results.json", "details.json"), report_from_files),
    "a report of several tasks": Loader("several tasks", ("results.json", "metrics.jsonl"), report_from_run),
    "a comparison": Loader(
        "one task", ("results.json", "details.json", "scores.npz", "config.yaml", "metrics.jsonl"), _compare
    ),
    "a comparison of several tasks": Loader(
        "several tasks", ("results.json", "config.yaml", "metrics.jsonl"), _compare_tasks
    ),
    "hard instances": Loader(
        "one task", ("results.json", "scores.npz", "config.yaml"), lambda run: study_runs(read_run(run), resamples=100)
    ),
    "scores": Loader("one task", ("scores.npz",), read_scores),
    "a history": Loader("one task", ("metrics.jsonl",), lambda run: read_history(run / "metrics.jsonl")),
    "checkpoints": Loader("one task", ("checkpoints/best.safetensors", "checkpoints/best.json"), _checkpoints),
    "tensors": Loader(
        "one task", ("checkpoints/best.safetensors",), lambda run: load_tensors(run / "checkpoints/best.safetensors")
    ),
    "the settings of a run": Loader("one task", ("config.yaml",), _evaluated),
    "a recipe": Loader("recipe", ("laptop.yaml",), _recipe),
    "a recipe of several tasks": Loader("tasks recipe", ("adamv-moe-scenes.yaml",), _recipe),
    "lists of labels and images": Loader(
        "lists", ("labels.json", "labels.yaml", "split.csv", "bad_images.csv"), _lists
    ),
    "the mark of a run": Loader("one task", ("run.json",), _run),
    "the owner of a lock": Loader("locked", (OWNER,), check_nobody_says_so),
    "the images a run was trained on": Loader("one task", ("trained_images.safetensors",), _trained),
    "receipts": Loader("lists", (".split.csv.manylabel",), lambda folder: has_receipt(folder / "split.csv")),
    "cached features": Loader(
        "cache",
        tuple(f"features/{KEY}/{name}" for name in ("facts.json", "final-mean.json", "final-mean.bin")),
        _features,
        lambda file: _sign_stage(file) if file.name == "final-mean.json" else None,
    ),
    "the index of a shard": Loader("cache", ("shards/INDEX",), _shards, _sign_index),
    "what a check found out": Loader("cache", ("check/JOURNAL",), _journal, _sign_journal),
    "what a fetch has done": Loader("fetched", (MANIFEST, LOCK, f"{ARCHIVES}/toy.tar.part.json"), _fetched),
    "vectors": Loader(
        "lists", ("v.npy",), lambda path: Given(Given.Options(path=str(path / "v.npy"))).embed(["red", "green"])
    ),
}


@pytest.fixture(scope="session")
def homes(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each kind of files, which a test changes and puts right again."""
    base = tmp_path_factory.mktemp("fuzzed")
    for name in ("one task", "other one task"):
        shutil.copytree(trained, base / name)
    ml.train(out=base / "several tasks", recipe=SMALL, settings=["train.steps=2"])
    shutil.copytree(base / "several tasks", base / "other several tasks")
    shutil.copytree(unpack(ARCHIVE, base / "kept") / "runs" / "tasks" / "bundle", base / "earlier")
    for name, old, new in (("one", "dropout: 0.0", "dropout: 0.1"), ("several", "drop_path: 0.0", "drop_path: 0.1")):
        config = base / f"other {name} task{'s' * (name == 'several')}" / "config.yaml"
        config.write_text(config.read_text().replace(old, new))
    for name, recipe in (("recipe", "laptop"), ("tasks recipe", "adamv-moe-scenes")):
        (base / name).mkdir()
        shutil.copy(RECIPES / f"{recipe}.yaml", base / name)
    lists = base / "lists"
    lists.mkdir()
    (lists / "labels.json").write_text(
        '{"red": {"parents": ["colour"], "synonyms": ["rot"]}, "colour": {}, "green": null}'
    )
    (lists / "labels.yaml").write_text("red:\n  parents: [colour]\n  description: like blood\ncolour:\ngreen:\n")
    (lists / "split.csv").write_text("file_name,split\na.jpg,train\nb.jpg,val\n")
    (lists / "bad_images.csv").write_text("file_name,reason\na.jpg,cut off\n")
    np.save(lists / "v.npy", np.eye(3, dtype=np.float32))
    (lists / "v.txt").write_text("red\ngreen\nblue\n")
    write_split_file(lists / "split.csv", {"a.jpg": "train", "b.jpg": "val"})
    (base / "locked").mkdir()
    owner = {"process": os.getpid(), "host": platform.node(), "since": "2026-11-19T12:00:00+00:00"}
    (base / "locked" / OWNER).write_text(json.dumps(owner))
    (base / "fetched" / ARCHIVES).mkdir(parents=True)
    manifest = Manifest(base / "fetched", "toy", {"splits": "all"})
    manifest.begin()
    manifest.note("toy.tar", Downloaded("http://127.0.0.1/toy.tar", 9, "sha256:0", ""), unpacked=True, files=3)
    manifest.remember("toy.tar", "sha256:0")
    version = {"url": "http://127.0.0.1/toy.tar", "validator": "x", "stated": None}
    (base / "fetched" / ARCHIVES / "toy.tar.part.json").write_text(json.dumps(version))
    _fill_cache(base / "cache")
    return base


def _fill_cache(folder: Path) -> None:
    """Features, the index of a shard, and what a check found out about photos, under names of our choice."""
    entry = folder / "features" / KEY
    entry.mkdir(parents=True)
    (entry / "facts.json").write_text(json.dumps({"format": 1, "backbone": "x", "images": 40, "view": {"number": 1}}))
    stage = StageFile.create(entry, "final-mean", 40, (8, 1, 1), "float32")
    stage.write(np.arange(40), torch.rand(40, 8, 1, 1))
    stage.done = 40
    stage.note()
    samples = make_samples(folder / "photos", 12)
    write_tar(folder / "photos.tar", tar_files(samples))
    (folder / "photos" / "labels.csv").write_text(
        "file_name,labels\n" + "".join(f"{name}.jpg,{'|'.join(labels)}\n" for name, _, labels in samples)
    )
    with _cache(folder), mock.patch.object(file_stamp, "YOUNG", -1.0):
        open_index(folder / "photos.tar")
        inspect_table(read_table(DataConfig(path=str(folder / "photos"))), workers=0)


def _named(folder: Path, name: str) -> Path:
    """The file that a loader is fed with; those whose names are digests are found by their place."""
    kind = {"INDEX": "*.index", "JOURNAL": "*/*.facts"}.get(Path(name).name)
    return folder / name if kind is None else next((folder / name).parent.glob(kind))


@pytest.fixture(scope="session")
def usual_seconds(homes: Path) -> dict[str, float]:
    """How long each loader takes for files as they are."""
    seconds = {}
    for name, loader in LOADERS.items():
        for _ in range(2):  # the first one imports
            started = time.process_time()
            loader.read(homes / loader.folder)
            seconds[name] = time.process_time() - started
    return seconds


def trial(loader: Loader, homes: Path, seed: int, seconds: float) -> None:
    dice = random.Random(seed)
    folder = homes / loader.folder
    with put_right(_named(folder, dice.choice(loader.files))) as file:
        file.write_bytes(mutated(file.read_bytes(), file.name, dice))
        if dice.random() < 0.75:
            loader.sign(file)
        if file.name != "checksums.json" and (folder / "checksums.json").exists():
            signed(folder)
        if file.parent.name == "checkpoints" and file.suffix == ".safetensors":
            from manylabel.storage.atomic import sha256, write_json

            write_json(file.with_suffix(".json"), {"sha256": sha256(file), "bytes": 1})
        try:
            with limits(MOST_SECONDS + seconds):
                loader.read(folder)
        except ManylabelError as error:
            said = str(error)
        else:
            return
        assert 10 < len(said) < 10_000, "an error says what is wrong, and not everything else"


def put_right(file: Path) -> Any:
    @contextmanager
    def kept() -> Iterator[Path]:
        beside = [file, file.parent / "checksums.json", file.with_suffix(".json")]
        before = {path: path.read_bytes() for path in beside if path.exists()}
        try:
            yield file
        finally:
            for path, content in before.items():
                path.write_bytes(content)

    return kept()


@pytest.mark.parametrize("name", LOADERS)
def test_only_our_own_errors_and_within_the_limits(name: str, homes: Path, usual_seconds: dict[str, float]) -> None:
    for seed in range(QUICK):
        trial(LOADERS[name], homes, seed, usual_seconds[name])


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", LOADERS)
def test_the_same_for_minutes(name: str, homes: Path, usual_seconds: dict[str, float]) -> None:
    examples = int(NIGHTLY if usual_seconds[name] < 0.1 else 1 + NIGHTLY * 0.1 / usual_seconds[name])

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.integers(0, 2**32))
    def fuzz(seed: int) -> None:
        trial(LOADERS[name], homes, seed, usual_seconds[name])

    fuzz()


COUNTS_AS_NOT_THERE = (
    *("details.json", "checkpoints/best.json", "config.yaml", "trained_images.safetensors", OWNER),
    *(".split.csv.manylabel", f"{ARCHIVES}/toy.tar.part.json"),
)


@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a device"])
@pytest.mark.parametrize("name", LOADERS)
def test_what_is_no_file_is_refused_at_once(name: str, kind: str, homes: Path, tmp_path: Path) -> None:
    loader = LOADERS[name]
    for each in loader.files:
        file = _named(homes / loader.folder, each)
        before = file.rename(tmp_path / "kept")
        try:
            os.mkfifo(file) if kind == "a pipe" else file.mkdir() if kind == "a folder" else file.symlink_to(
                "/dev/zero"
            )
            try:
                loader.read(homes / loader.folder)
            except ManylabelError:
                pass
            else:
                assert each in COUNTS_AS_NOT_THERE or loader.folder == "cache", "it is read, or refused"
        finally:
            file.rmdir() if file.is_dir() else file.unlink(missing_ok=True)  # it may have made way
            before.rename(file)
