"""MT2 and CK4 with two processes: the same answers, and the same bits after a stop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warm
import yaml
from shard_files import make_samples, write_parquet_shards
from small_tasks import SMALL

from manylabel.storage.atomic import sha256

SCORE = """
import sys, numpy as np, torch
from manylabel.config import DataConfig, make_config
from manylabel.data.read import read_table
from manylabel.data.sampler import EpochBatches
from manylabel.model import Model
from manylabel.training.feed import PixelFeed
from manylabel.training.processes import make_accelerator
from manylabel.training.scoring import score
torch.manual_seed(0)
torch.set_num_threads(1)
accelerator = make_accelerator()
table = read_table(DataConfig(path=sys.argv[1]))
model = Model(make_config(settings=sys.argv[3:]), len(table.labels)).only
order = EpochBatches(np.arange(9), 5, shuffle=False, rank=accelerator.process_index, world=accelerator.num_processes)
feed = PixelFeed(table, order, model.backbone.preprocess, workers=0)
scored = score(model, feed.batches(), accelerator)
rows, scores, bad = scored.rows, scored.scores, scored.bad
if accelerator.is_main_process:
    np.savez(sys.argv[2], rows=rows, scores=scores, bad=[key for key, _ in bad])
"""


def _launch(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.run(*arguments, processes=processes)


def _launch_for_real(processes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """As the docs say it."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    return subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, timeout=300)


@pytest.mark.slow
def test_mt2_nine_images_on_two_processes(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    (photos / "images" / "photo003.jpg").write_bytes(b"")
    script = tmp_path / "score.py"
    script.write_text(SCORE)
    found = {}
    for processes in (1, 2):
        out = tmp_path / f"{processes}.npz"
        launch = _launch if processes == 1 else _launch_for_real
        answer = launch(processes, str(script), str(photos), str(out), *tiny_settings)
        assert answer.returncode == 0, answer.stderr
        found[processes] = np.load(out)
    assert found[2]["rows"].tolist() == [0, 1, 2, 4, 5, 6, 7, 8]
    assert found[2]["bad"].tolist() == ["photo003.jpg"]
    assert np.array_equal(found[1]["rows"], found[2]["rows"])
    assert np.allclose(found[1]["scores"], found[2]["scores"], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "parquet"])
def test_two_processes_train_and_resume_to_the_same_bits(
    photos: Path, tmp_path: Path, tiny_settings: list[str], kind: str
) -> None:
    data = photos if kind == "files" else write_parquet_shards(tmp_path / "shards", make_samples(tmp_path / "p", 48))
    stop = tmp_path / "stop.py"
    stop.write_text(
        "import os\n"
        "from manylabel.training.loop import Trainer\n"
        "step, seen = Trainer._step, []\n"
        "def counting(self):\n"
        "    seen.append(1)\n"
        "    if len(seen) == 4 and os.environ['RANK'] == '1': self.stop.signal = 15\n"  # all stop when one is asked
        "    step(self)\n"
        "Trainer._step = counting\n"
        "from manylabel.cli import main\n"
        "main()\n"
    )
    settings = [*tiny_settings, "backbone.freeze=full", "train.epochs=2", "train.batch_size=4", "data.workers=0"]
    options = [part for setting in [*settings, "head.dropout=0.2"] for part in ("--set", setting)]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    first = _launch(2, "-m", "manylabel", "train", str(data), "--out", str(whole), *options)
    assert first.returncode == 0, first.stderr
    interrupted = _launch(2, str(stop), "train", str(data), "--out", str(cut), *options)
    assert interrupted.returncode != 0
    assert "everything is saved" in interrupted.stderr
    resumed = _launch(2, "-m", "manylabel", "train", "--resume", "--out", str(cut))
    assert resumed.returncode == 0, resumed.stderr
    assert sha256(cut / "bundle" / "weights.safetensors") == sha256(whole / "bundle" / "weights.safetensors")
    assert json.loads((whole / "run.json").read_text())["processes"] == 2
    assert len((cut / "metrics.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
def test_several_tasks_on_two_processes(tmp_path: Path) -> None:
    """Both processes' val images count, all weights stay alike, and a stopped run goes on to the same bits."""
    recipe = tmp_path / "small.yaml"
    recipe.write_text(yaml.safe_dump(SMALL))
    stop = tmp_path / "stop.py"
    stop.write_text(
        "import os\n"
        "from manylabel.training.loop import Trainer as T\n"
        "after = T._between_steps\n"
        "def stopping(self):\n"
        "    if self.state.step == 3 and os.environ['RANK'] == '1': self.stop.signal = 15\n"
        "    after(self)\n"
        "T._between_steps = stopping\n"
        "from manylabel.cli import main\n"
        "main()\n"
    )
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    first = _launch(2, "-m", "manylabel", "train", "--recipe", str(recipe), "--out", str(whole))
    assert first.returncode == 0, first.stderr
    interrupted = _launch(2, str(stop), "train", "--recipe", str(recipe), "--out", str(cut))
    assert interrupted.returncode != 0
    assert "everything is saved" in interrupted.stderr
    resumed = _launch(2, "-m", "manylabel", "train", "--resume", "--out", str(cut))
    assert resumed.returncode == 0, resumed.stderr
    assert sha256(cut / "bundle" / "weights.safetensors") == sha256(whole / "bundle" / "weights.safetensors")
    told = json.loads((whole / "results.json").read_text())["tasks"]
    judged = _launch(1, "-m", "manylabel", "evaluate", str(whole), "--json", str(tmp_path / "one.json"))
    assert judged.returncode == 0, judged.stderr
    again = json.loads((tmp_path / "one.json").read_text())["tasks"]
    assert again["labels"]["figures"]["mAP"] == pytest.approx(told["labels"]["figures"]["mAP"], abs=0.01)
    assert again["objects"]["figures"]["AP50"] == pytest.approx(told["objects"]["figures"]["AP50"], abs=0.01)
