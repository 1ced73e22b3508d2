"""Real files of small runs with something wrong in them, in every loader of what strangers write: read, or refused with an
error of ours that says what is wrong; never a traceback, never gigabytes, never minutes."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_tasks import SMALL
from strangers import MOST_SECONDS, limits, mutated
from test_strangers_bundles import signed

import manylabel as ml
from manylabel.compare import compare_runs, compare_tasks, methods_of, read_run
from manylabel.config import DataConfig, load_recipe, load_yaml, make_config, parse
from manylabel.data.bad_images import BadImages
from manylabel.data.read.label_file import read_label_file
from manylabel.data.read.split_file import read_parts
from manylabel.error import ManylabelError
from manylabel.hard_runs import study_runs
from manylabel.multitask.run import train_tasks
from manylabel.multitask.settings import make_multitask_config
from manylabel.report import report_from_files
from manylabel.report.multitask_page import report_from_run
from manylabel.score_file import read_scores
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
        values = load_recipe(str(path))
        if "tasks" in values:
            make_multitask_config(values)
        else:
            make_config(str(path))


def _evaluated(run: Path) -> None:
    parse(DataConfig, load_yaml(run / "config.yaml").get("data") or {})


def _lists(folder: Path) -> None:
    read_label_file(folder / "labels.json")
    read_label_file(folder / "labels.yaml")
    read_parts(folder / "split.csv")
    BadImages(9, 1.0, folder / "bad_images.csv").recall()


BUNDLE = ("weights.safetensors", "labels.json", "preprocess.json", "config.yaml", "checksums.json")
LOADERS: dict[str, Loader] = {
    "a bundle": Loader("one task/bundle", BUNDLE, lambda path: ml.load_bundle(path)),
    "a bundle of several tasks": Loader(
        "several tasks/bundle",
        ("weights.safetensors", "tasks.json", "config.yaml", "checksums.json"),
        lambda path: ml.TaskPredictor.load(path),
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
    train_tasks(base / "several tasks", recipe=SMALL, settings=["train.steps=2"])
    shutil.copytree(base / "several tasks", base / "other several tasks")
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
    return base


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
    with put_right(folder / dice.choice(loader.files)) as file:
        file.write_bytes(mutated(file.read_bytes(), file.name, dice))
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
    from contextlib import contextmanager

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


@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a device"])
@pytest.mark.parametrize("name", LOADERS)
def test_what_is_no_file_is_refused_at_once(name: str, kind: str, homes: Path, tmp_path: Path) -> None:
    import os

    loader = LOADERS[name]
    for each in loader.files:
        file = homes / loader.folder / each
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
                assert each in ("details.json", "checkpoints/best.json", "config.yaml"), "it is read, or refused"
        finally:
            file.rmdir() if kind == "a folder" else file.unlink()
            before.rename(file)
