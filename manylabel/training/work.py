"""What a loop trains, and where: the parts that belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import Accelerator

from manylabel.data.bad_images import BadImages
from manylabel.data.table import Table
from manylabel.labels import never_trained, support
from manylabel.stop import StopRequest
from manylabel.task import Classification
from manylabel.training.feed import Feed


@dataclass(frozen=True)
class TaskAtWork:
    """A task with its images."""

    task: Classification
    table: Table
    train_feed: Feed
    val_feed: Feed
    bad_images: BadImages
    unseen: np.ndarray | None = None  # [N] bool: labels that must not choose the epoch

    @property
    def never_trained(self) -> np.ndarray:
        """[N] bool: labels without a training image, which must not choose it either."""
        images = support(self.table.matrix[self.table.rows("train")])
        return never_trained(images, self.unseen, len(self.table.labels))


@dataclass(frozen=True)
class Workplace:
    """Where a run is kept, the processes that work on it, and how it is stopped and watched."""

    folder: Path
    accelerator: Accelerator
    stop: StopRequest
    home: Path | None = None  # where the run that this is a part of can be resumed; None = in `folder`
    report: Callable[[Any], None] = lambda _: None  # a Progress after every batch
    say: Callable[[str], None] = lambda _: None

    @property
    def again(self) -> str:
        """The command that goes on."""
        return f"manylabel train --resume --out {self.home or self.folder}"
