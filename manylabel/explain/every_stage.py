"""The same labels at every stage of the backbone, side by side (Figs. 2 and 5 of RM's paper)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from manylabel.data.given_image import ImageLike
from manylabel.error import ConfigError
from manylabel.explain.explainer import Explainer
from manylabel.explain.explanation import Explanation
from manylabel.explain.method import ATTENTION, AUTO, BEST_CAM
from manylabel.inference.labels import LabelPredictor
from manylabel.inference.predictor import Predictor

ALL = "all"


class EveryStage:
    """An explainer for each stage. Images are read once for each, so none of them need fit into memory together."""

    def __init__(self, predictor: Predictor | LabelPredictor, method: str = AUTO, task: str | None = None) -> None:
        if method == ATTENTION:
            raise ConfigError(
                "attention looks at the head's own stages; for every stage use grad_cam, grad_cam_pp or eigen_cam"
            )
        self.method = BEST_CAM if method == AUTO else method
        last = Explainer(predictor, self.method, None, task)
        self.stages = tuple(last.model.backbone.channels)
        self._each = [Explainer(predictor, self.method, stage, task) for stage in self.stages]

    def columns(self, names: Sequence[str]) -> list[int]:
        return self._each[0].columns(names)

    def stream(
        self,
        images: ImageLike | Iterable[ImageLike],
        labels: Sequence[str] | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> Iterator[list[Explanation]]:
        """For each image its labels one after the other, each at all stages; one with an error for an unreadable image."""
        again = list(images) if isinstance(images, Iterator) else images
        streams = [each.stream(again, labels, advance if each is self._each[-1] else _silent) for each in self._each]
        for rows in zip(*streams, strict=True):
            yield (
                rows[0] if rows[0][0].error is not None else [one for label in zip(*rows, strict=True) for one in label]
            )


def _silent(_: int) -> None:
    pass


def explainer_for(
    predictor: Predictor | LabelPredictor, method: str = AUTO, stage: str | None = None, task: str | None = None
) -> Explainer | EveryStage:
    """`stage` all: every one of the backbone's."""
    return EveryStage(predictor, method, task) if stage == ALL else Explainer(predictor, method, stage, task)
