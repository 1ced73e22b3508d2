"""A part of a model in a whole run, as people use it: two steps of training, stored, loaded, asked."""

from __future__ import annotations

from pathlib import Path

from command import TINY
from same_scores import check_bundle_scores_as_its_run

from manylabel import run
from manylabel.data.read import load_data
from manylabel.training.history import read_history

STEPS = 2


def check_whole_run(photos: Path, out: Path, *settings: str) -> None:
    """It trains on the photos, and its bundle says of them what the run said."""
    images = round(0.8 * len(load_data(photos).keys))
    short = ["train.epochs=1", "data.workers=0", f"train.batch_size={-(-images // STEPS)}"]
    done = run.train(str(photos), out=out, settings=[*TINY, *short, *settings])
    assert [row["step"] for row in read_history(out / "metrics.jsonl")] == [STEPS]
    check_bundle_scores_as_its_run(done, photos)
