"""The plain form: normalised pixels [B, 3, S, S] → the logits of each task, for any B."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from manylabel.core.per_task import PerTask
from manylabel.engine.outputs import Outputs, on
from manylabel.model import TaskModel


class PlainOutputs(Outputs):
    what = "logits"

    def __init__(self, paths: Mapping[str, TaskModel]) -> None:
        super().__init__()
        self.paths = PerTask({name: on(path, path.backbone.of_normalised()) for name, path in paths.items()})
        self.names = tuple(output_name("logits", name, len(paths) == 1) for name in paths)

    def forward(self, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
        (pixels,) = inputs.values()
        return tuple(path(pixels).logits for path in self.paths.values())


def output_name(what: str, task: str, alone: bool) -> str:
    """As it is called in the file."""
    return what if alone else f"{task}.{what}"
