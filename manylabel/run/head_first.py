"""Linear probe, then fine-tuning (LP-FT): the head learns on cached features first, so that its beginnings do not
disturb what the backbone knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from accelerate import Accelerator

from manylabel import console
from manylabel.config import AugmentConfig, Config
from manylabel.data.bad_images import BadImages
from manylabel.data.table import Table
from manylabel.head import LabelKnowledge
from manylabel.model import Model
from manylabel.run.feeds import make_feeds
from manylabel.stop import StopRequest
from manylabel.task import Classification
from manylabel.training.loop import Trainer
from manylabel.training.work import TaskAtWork, Workplace

FOLDER = "head_first"


def head_first_config(config: Config) -> Config:
    """The same run with a frozen backbone, without augmentation, for `train.head_first` epochs."""
    t = config.train
    train = replace(t, epochs=t.head_first, head_first=0, views=0, ema=0.0, accumulate=1, keep="best")
    backbone = replace(config.backbone, freeze="frozen")
    return replace(config, backbone=backbone, augment=AugmentConfig(), train=train)


def train_head_first(
    config: Config,
    model: Model,
    knowledge: LabelKnowledge,
    table: Table,
    folder: Path,
    accelerator: Accelerator,
    bad: BadImages,
    stop: StopRequest,
    task: Classification,
) -> None:
    """Leaves neck and head of `model` as they are after some epochs on frozen features; its checkpoints are in the run's
    folder, so that a stopped run goes on here, too."""
    early = head_first_config(config)
    frozen = Model(early, len(table.labels), knowledge=knowledge)
    frozen.load_state_dict(model.state_dict())
    frozen.to(accelerator.device)
    train_feed, val_feed = make_feeds(early, frozen, table, accelerator, bad, stop)
    work = TaskAtWork(task, table, train_feed, val_feed, bad, knowledge.unseen)
    place = Workplace(
        folder / FOLDER, accelerator, stop, home=folder, say=lambda text: console.say(f"head first: {text}")
    )
    Trainer(early, frozen, work, place).fit(resume=(folder / FOLDER / "checkpoints").is_dir())
    accelerator.free_memory()  # it would keep the frozen copy and its optimiser
    model.head.load_state_dict(frozen.head.state_dict())
    model.neck.load_state_dict(frozen.neck.state_dict())
