from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
import warm

from manylabel.cache import Announcement, FeatureCache, cached_features, extract, stage_file
from manylabel.cache.engine_choice import choose_engine
from manylabel.cache.key import cache_key, weights_fingerprint
from manylabel.cache_folder import cache_folder
from manylabel.config import Config, DataConfig, make_config
from manylabel.data.contents import contents
from manylabel.data.read import read_table
from manylabel.data.table import Table
from manylabel.engine.onnx import OnnxEngine
from manylabel.error import CheckpointError, ConfigError
from manylabel.model import Model, TaskModel
from manylabel.stop import Stopped, StopRequest
from manylabel.training.feed import Placed

RUN = OnnxEngine.run


def _config(tiny: list[str]) -> Config:
    return make_config(settings=tiny)


@pytest.fixture
def table(photos: Path) -> Table:
    return read_table(DataConfig(path=str(photos)))


@pytest.fixture
def model(table: Table, tiny_settings: list[str]) -> TaskModel:
    torch.manual_seed(0)
    return Model(_config(tiny_settings), len(table.labels)).only.eval()


def _cache(model: TaskModel, table: Table, **options: object) -> FeatureCache:
    return cached_features(model, table, model.backbone.preprocess, workers=0, **options)  # type: ignore[arg-type]


def _everything(cache: FeatureCache, stage: str = "final") -> torch.Tensor:
    return cache.read(np.arange(cache.count))[stage]


def _count_forwards(model: TaskModel) -> list[int]:
    seen: list[int] = []
    model.backbone.register_forward_hook(lambda _m, inputs, _o: seen.append(len(inputs[0])))
    return seen


def test_cached_logits_equal_those_from_pixels(model: TaskModel, table: Table) -> None:
    from manylabel.data.sampler import EpochBatches
    from manylabel.training.feed import PixelFeed

    cache = _cache(model, table)
    feed = PixelFeed(
        table, EpochBatches(np.arange(len(table)), 16, shuffle=False), model.backbone.preprocess, workers=0
    )
    with torch.inference_mode():
        direct = torch.cat([model(batch.inputs).logits for batch in feed.batches()])
        rows = np.array([3, 1, 40, 7])
        assert torch.allclose(model(cache.features(rows)).logits, direct[rows], atol=1e-5)


def test_the_second_time_the_backbone_is_not_touched(model: TaskModel, table: Table) -> None:
    _cache(model, table)
    seen = _count_forwards(model)
    told: list[Announcement] = []
    again = _cache(model, table, announce=told.append)
    assert seen == []
    assert told[0].done == told[0].images == len(table)
    assert again.files["final"].shape == (256, 1, 1)  # a pooled head needs no places


def test_size_is_announced_before_writing_and_refused_on_a_small_disk(
    model: TaskModel, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(10, 0, 1000))
    with pytest.raises(CheckpointError, match=r"features need 0\.00 GB.*MANYLABEL_CACHE.*float16"):
        _cache(model, table)
    assert not list(cache_folder().rglob("*.bin"))
    monkeypatch.undo()
    told: list[Announcement] = []
    _cache(model, table, announce=told.append)
    assert told[0].bytes == len(table) * 256 * 4


@pytest.mark.parametrize("change", ["weights", "preprocess", "images", "dtype"])
def test_anything_that_changes_the_features_changes_the_key(
    model: TaskModel, table: Table, tiny_settings: list[str], change: str, photos: Path
) -> None:
    def key() -> str:
        images = contents(table.source, table.keys.tolist())
        return cache_key(weights_fingerprint(model), images, preprocess, dtype)

    preprocess, dtype = model.backbone.preprocess, "float32"
    before = key()
    photo = photos / "images" / "photo000.jpg"
    if change == "weights":
        with torch.no_grad():
            next(model.backbone.parameters()).add_(1e-3)
    elif change == "preprocess":
        preprocess = replace(preprocess, resize="pad")
    elif change == "images":
        photo.write_bytes(photo.read_bytes() + b"\0")
    else:
        dtype = "float16"
    assert key() != before


def test_an_interrupted_extraction_goes_on_where_it_was(
    model: TaskModel, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "BATCH", 8)
    monkeypatch.setattr(extract, "SAVE_EVERY", 1)
    stop = StopRequest()

    def interrupt(count: int) -> None:
        interrupt.seen += count  # type: ignore[attr-defined]
        if interrupt.seen >= 16:  # type: ignore[attr-defined]
            stop.signal = 15

    interrupt.seen = 0  # type: ignore[attr-defined]
    with pytest.raises(Stopped, match="features of 16 of 48 images"):
        _cache(model, table, stop=stop, advance=interrupt)
    seen = _count_forwards(model)
    resumed = _cache(model, table)
    assert sum(seen) == 32
    key = resumed.folder
    first = _everything(resumed)
    shutil.rmtree(key)
    assert torch.equal(_everything(_cache(model, table)), first)


def test_damaged_files_are_computed_again(model: TaskModel, table: Table) -> None:
    cache = _cache(model, table)
    good = _everything(cache)
    with open(cache.folder / "final-mean.bin", "r+b") as file:
        file.truncate(100)
    assert torch.equal(_everything(_cache(model, table)), good)


def test_unreadable_images_are_remembered(model: TaskModel, photos: Path) -> None:
    (photos / "images" / "photo004.jpg").write_bytes(b"")
    table = read_table(DataConfig(path=str(photos)))
    for _ in range(2):  # computed, then from disk
        cache = _cache(model, table)
        assert list(cache.bad) == [4]
        assert Placed(cache, np.arange(6)).usable(np.arange(6)).tolist() == [0, 1, 2, 3, 5]


def test_float16_halves_the_size_and_refuses_what_does_not_fit(model: TaskModel, table: Table) -> None:
    full, half = _cache(model, table), _cache(model, table, dtype="float16")
    assert half.files["final"].bytes * 2 == full.files["final"].bytes
    rows = np.arange(10)
    assert torch.allclose(half.features(rows).final, full.features(rows).final, rtol=1e-3, atol=1e-3)
    with torch.no_grad():
        for parameter in list(model.backbone.parameters())[-2:]:
            parameter.mul_(1e9)
    with pytest.raises(CheckpointError, match="do not fit float16"):
        _cache(model, table, dtype="float16")


def test_facts_say_what_it_is(model: TaskModel, table: Table) -> None:
    facts = json.loads((_cache(model, table).folder / "facts.json").read_text())
    assert facts["backbone"] == "test_efficientnet"
    assert facts["images"] == len(table)
    assert len(facts["weights"]) == 64
    assert facts["preprocess"]["size"] == model.backbone.preprocess.size


# --- any set of stages --------------------------------------------------------------------------------------------------


def _with_stages(tiny: list[str], labels: int, *stages: str) -> TaskModel:
    torch.manual_seed(0)
    names = ",".join(stages)
    return Model(make_config(settings=[*tiny, "head.name=ml_decoder", f"head.stages={names}"]), labels).only.eval()


def test_a_stage_that_is_wanted_later_joins_those_that_are_there(
    model: TaskModel, table: Table, tiny_settings: list[str]
) -> None:
    torch.manual_seed(0)
    one = _with_stages(tiny_settings, len(table.labels), "final")
    first = _cache(one, table)
    before = (first.folder / "final.bin").stat().st_mtime_ns
    two = _with_stages(tiny_settings, len(table.labels), "stage3", "final")
    both = _cache(two, table)
    assert both.folder == first.folder
    assert (first.folder / "final.bin").stat().st_mtime_ns == before
    assert sorted(p.stem for p in first.folder.glob("*.bin")) == ["final", "stage3"]
    with torch.inference_mode():
        blank = two.backbone.preprocess.size
        assert both.files["stage3"].shape == tuple(
            two.backbone(torch.zeros(1, 3, blank, blank)).stages["stage3"].shape[1:]
        )
    assert torch.equal(_everything(first), _everything(both))
    seen = _count_forwards(one)
    assert torch.equal(_everything(_cache(one, table)), _everything(first))
    assert seen == []


def test_a_half_frozen_backbone_goes_on_from_what_enters_its_trained_part(
    table: Table, tiny_settings: list[str]
) -> None:
    settings = [
        *tiny_settings,
        "backbone.freeze=partial",
        "head.name=ml_decoder",
        "head.stages=stage2,stage3,stage5,final",
    ]
    torch.manual_seed(0)
    model = Model(make_config(settings=[*settings, "backbone.trained_after=stage3"]), len(table.labels)).only.eval()
    cache = _cache(model, table)
    assert sorted(p.stem for p in cache.folder.glob("*.bin")) == ["entry-stage3", "stage2"]
    rows = np.array([5, 0, 17])
    images = torch.stack([_pixels(model, table, int(row)) for row in rows])
    with torch.inference_mode():
        assert torch.allclose(model(cache.features(rows)).logits, model(images).logits, atol=1e-5)


def _pixels(model: TaskModel, table: Table, row: int) -> torch.Tensor:
    from manylabel.data.transform import evaluation_transform, needed_side

    preprocess = model.backbone.preprocess
    image = table.source.read(str(table.keys[row]), at_least=needed_side(preprocess))
    return torch.from_numpy(evaluation_transform(preprocess)(image))


# --- how they are stored and computed -----------------------------------------------------------------------------------


def test_bfloat16_keeps_what_float16_cannot_and_the_error_is_noted(model: TaskModel, table: Table) -> None:
    full = _cache(model, table)
    with torch.no_grad():
        for parameter in list(model.backbone.parameters())[-2:]:
            parameter.mul_(1e7)
    large, brief = _cache(model, table), _cache(model, table, dtype="bfloat16")
    assert torch.allclose(_everything(brief), _everything(large), rtol=2**-8)
    assert 0 < brief.files["final"].rounding < 2**-8
    assert full.files["final"].rounding == 0


def test_what_loses_too_much_is_refused(model: TaskModel, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_file, "LARGEST_ROUNDING", 1e-9)
    with pytest.raises(CheckpointError, match=r"do not fit float16: they lose 0\.0%.*cache_dtype=float32"):
        _cache(model, table, dtype="float16")


@pytest.mark.parametrize(
    "settings", [[], ["backbone.freeze=partial"], ["head.name=ml_decoder", "head.stages=stage2,final"]]
)
def test_onnxruntime_gives_the_same_features(table: Table, tiny_settings: list[str], settings: list[str]) -> None:
    model = Model(make_config(settings=[*tiny_settings, *settings]), len(table.labels)).only.eval()
    plain = _cache(model, table, runtime="torch")
    expected = {name: _everything(plain, name) for name in plain.files}
    shutil.rmtree(plain.folder)
    told: list[Announcement] = []
    other = _cache(model, table, runtime="onnxruntime", announce=told.append)
    assert told[0].runtime == "onnxruntime"
    for name, values in expected.items():
        assert torch.allclose(_everything(other, name), values, atol=1e-4 * float(values.abs().max()))


def _wrong(self: OnnxEngine, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: 1.01 * value for name, value in RUN(self, inputs).items()}


def _choose(model: TaskModel, wanted: str, images: int = 10, device: str = "cpu") -> str:
    return choose_engine(wanted, model, model.backbone.preprocess, device, images).name


def test_an_engine_that_gives_other_features_is_not_used(
    model: TaskModel, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(OnnxEngine, "run", _wrong)
    with pytest.raises(ConfigError, match=r"onnxruntime gives features that differ by 1\.0%.*extract_with=torch"):
        _choose(model, "onnxruntime")
    assert _choose(model, "auto", images=10) == "torch"
    assert capfd.readouterr().err == ""
    assert _choose(model, "auto", images=10**6) == "torch"
    assert "differ by 1.0% from torch's: the export is not kept; torch computes them" in capfd.readouterr().err
    with pytest.raises(ConfigError, match="none of auto"):
        _choose(model, "tensorrt")


def test_onnxruntime_is_chosen_for_many_images_on_a_cpu(model: TaskModel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _choose(model, "auto", images=1000) == "onnxruntime"
    assert _choose(model, "auto", images=999) == "torch"
    assert _choose(model, "auto", images=1000, device="meta") == "torch"
    with pytest.raises(ConfigError, match="is for a CPU"):
        _choose(model, "onnxruntime", device="meta")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as if it were not installed
    assert _choose(model, "auto", images=1000) == "torch"
    with pytest.raises(ConfigError, match="onnxruntime is not installed: pip install onnxruntime"):
        _choose(model, "onnxruntime")


def test_the_model_stays_laid_out_as_it_was(table: Table, tiny_settings: list[str]) -> None:
    model = Model(make_config(settings=[*tiny_settings, "backbone.freeze=partial"]), len(table.labels)).only
    before = model.backbone.layout
    written = []
    engine = choose_engine("torch", model, model.backbone.preprocess, "cpu", 1)
    setter = type(model.backbone).__setattr__

    def note(self: object, name: str, value: object) -> None:
        written.append(name)
        setter(self, name, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model.backbone), "__setattr__", note)
        side = model.backbone.preprocess.size
        assert set(engine(np.zeros((2, 3, side, side), np.uint8))) == set(model.feature_names)
    assert written == []  # one model may serve many threads
    assert model.backbone.layout is before is torch.contiguous_format


def test_features_of_other_weights_are_refused(model: TaskModel, table: Table) -> None:
    cache = _cache(model, table)
    facts = json.loads((cache.folder / "facts.json").read_text())
    (cache.folder / "facts.json").write_text(json.dumps({**facts, "weights": "0" * 64}))
    with pytest.raises(CheckpointError, match="features of other weights.*manylabel cache prune"):
        _cache(model, table)
    assert (cache.folder / "final-mean.bin").exists()


KILLED = """
import sys, os, signal
from manylabel.cache import cached_features, extract
from manylabel.config import DataConfig, make_config
from manylabel.data.read import read_table
from manylabel.model import Model, TaskModel
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
extract.BATCH, extract.SAVE_EVERY = 8, 1
table = read_table(DataConfig(path=sys.argv[1]))
model = Model(make_config(settings=sys.argv[3:]), len(table.labels)).only.eval()
computed = []
model.backbone.register_forward_hook(lambda _m, given, _o: computed.append(len(given[0])))
def advance(_count):
    if sys.argv[2] == "die" and sum(computed) >= 24: os.kill(os.getpid(), signal.SIGKILL)
cache = cached_features(model, table, model.backbone.preprocess, workers=0, runtime="torch", advance=advance)
import hashlib, numpy as np
print(sum(computed), hashlib.sha256(cache.read(np.arange(cache.count))["final"].numpy().tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_an_extraction_that_was_killed_goes_on(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    script = tmp_path / "extract.py"
    script.write_text(KILLED)

    def go(mode: str, cache: str) -> subprocess.CompletedProcess[str]:
        with mock.patch.dict(os.environ, MANYLABEL_CACHE=str(tmp_path / cache)):
            return warm.run(script, photos, mode, *tiny_settings)

    assert go("die", "killed").returncode == -9
    resumed, whole = go("live", "killed"), go("live", "whole")
    assert resumed.returncode == whole.returncode == 0, resumed.stderr + whole.stderr
    (left, digest), (every, expected) = resumed.stdout.split(), whole.stdout.split()
    assert int(left) <= int(every) - 16  # what was noted before the kill is not computed again
    assert digest == expected
