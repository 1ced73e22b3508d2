"""`manylabel cache`: what is there, whether it is whole, and how it goes away."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from manylabel.cache import cached_features
from manylabel.cache.extract import alone
from manylabel.cache.inventory import entries, select, stale, verify
from manylabel.cache.stage_file import StageFile
from manylabel.cache_folder import cache_folder
from manylabel.cli import app
from manylabel.config import DataConfig, make_config
from manylabel.data.read import read_table
from manylabel.error import DataError
from manylabel.model import Model


@pytest.fixture
def folder(photos: Path, tiny_settings: list[str]) -> Path:
    """The features of 48 photos."""
    torch.manual_seed(0)
    table = read_table(DataConfig(path=str(photos)))
    model = Model(make_config(settings=tiny_settings), len(table.labels)).only.eval()
    return cached_features(model, table, model.backbone.preprocess, workers=0).folder


def _manylabel(*words: str) -> tuple[int, str]:
    answer = CliRunner().invoke(app, ["cache", *words])
    return answer.exit_code, answer.output if answer.exception is None else f"{answer.output}{answer.exception}"


def test_what_is_there(folder: Path) -> None:
    (entry,) = entries()
    assert (entry.key, entry.complete, entry.view, entry.problems) == (folder.name, True, 0, ())
    code, text = _manylabel("list", "--json")
    (listed,) = json.loads(text)
    assert code == 0
    assert listed["backbone"] == "test_efficientnet"
    assert listed["stages"]["final-mean"]["done"] == listed["images"] == 48
    assert listed["bytes"] > 48 * 256 * 4
    assert folder.name[:12] in _manylabel("list")[1]


def test_an_empty_cache_is_no_error() -> None:
    assert _manylabel("list")[0] == _manylabel("verify")[0] == 0
    assert "nothing in" in _manylabel("list")[1]


def test_a_changed_bit_is_found(folder: Path) -> None:
    assert verify(entries()[0]) == []
    with open(folder / "final-mean.bin", "r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    code, text = _manylabel("verify")
    assert code == 1
    assert "has changed since it was written" in text


def test_what_was_not_finished_or_is_of_another_time(folder: Path) -> None:
    file = StageFile.find(folder, "final-mean")
    assert file is not None
    file.done, file.sums = 16, []
    file.note()
    assert "only 16 of 48 images are done" in _manylabel("verify")[1]
    old = cache_folder() / "features" / ("0" * 32)
    old.mkdir()
    (old / "facts.json").write_text('{"format": 2}')
    assert [e.problems for e in entries() if e.key == "0" * 32] == [
        ("written by another version, which is not read any more",)
    ]
    assert _manylabel("prune", "--incomplete")[0] == 0
    assert entries() == []


def test_pruning_takes_what_was_asked_for_and_nothing_else(folder: Path) -> None:
    assert "say what to throw away" in _manylabel("prune")[1]
    _manylabel("prune", "--older-than", "1")
    _manylabel("prune", "--all", "--dry-run")
    assert folder.exists()
    os.utime(folder / "lock", (0, time.time() - 3 * 86_400))
    assert stale(entries()[0], 2)
    _manylabel("prune", "--older-than", "2")
    assert not folder.exists()


def test_keys_may_be_short_and_a_wrong_one_is_an_error(folder: Path) -> None:
    assert [e.folder for e in select([folder.name[:4]])] == [folder]
    with pytest.raises(DataError, match="holds no features 'zzz'"):
        select(["zzz"])


def test_what_somebody_writes_to_is_left_alone(folder: Path) -> None:
    with alone(folder):
        assert "somebody is using it" in _manylabel("prune", "--all")[1]
    assert folder.exists()
