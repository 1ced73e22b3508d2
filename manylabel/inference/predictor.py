"""The one door to a trained model: Predictor.load(run).predict(images). An exported file is asked without torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manylabel.allocator import keep_memory
from manylabel.core.train_extra import needs_train
from manylabel.data.given_image import ImageLike
from manylabel.engine import Engine
from manylabel.error import ConfigError
from manylabel.inference.decoding import Decoding
from manylabel.inference.engine_choice import with_engine
from manylabel.inference.exported import ExportedLabels
from manylabel.inference.exported_file import ExportedFile, open_exported
from manylabel.inference.task_predictor import AnyTaskPredictor, checked_batch_size
from manylabel.runtime.fork import one_thread_in_children
from manylabel.suggest import closest

if TYPE_CHECKING:
    import torch

    from manylabel.bundle import Bundle, TaskBundle

OBJECTS_AT_ONCE = 8  # images of a batch in which objects are looked for: their masks take memory


class Predictor:
    """A bundle on a device, or an exported file. Of a model with several tasks it answers all, or the one that is asked
    for."""

    def __init__(
        self,
        bundle: Bundle | TaskBundle | ExportedFile,
        device: str | torch.device | None = None,
        batch_size: int = 32,
        engine: Engine | None = None,
    ) -> None:
        keep_memory()
        one_thread_in_children()
        self.batch_size = checked_batch_size(batch_size)
        self.file = bundle if isinstance(bundle, ExportedFile) else None
        self.bundles: dict[str, TaskBundle] = {}
        self.device: torch.device | str = "cpu"
        self._engine = engine
        self._of: dict[str, AnyTaskPredictor] = {}
        if not isinstance(bundle, ExportedFile):
            self._hold(bundle, device)
        elif engine is not None or str(device or "cpu") != "cpu":
            raise ConfigError(
                f"{bundle.path} brings its own engine, which computes on the CPU; leave device and engine out"
            )

    def _hold(self, bundle: Bundle | TaskBundle, device: str | torch.device | None) -> None:
        import torch

        from manylabel.bundle import TaskBundle

        self.bundles = {bundle.name: bundle} if isinstance(bundle, TaskBundle) else dict(bundle.tasks)
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        if self._engine is not None and len(self.bundles) > 1:
            raise ConfigError(
                "an engine computes one task; give the bundle of that task: Predictor(bundle.tasks[NAME], …)"
            )

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], device: str | torch.device | None = None, engine: str | None = None
    ) -> Predictor:
        """From the folder of a run, a bundle folder, or a file that `manylabel export` wrote.

        `engine`: of an exported file onnx (default), openvino, or auto: the faster of them on this machine.
        """
        if os.path.exists(path) and not os.path.isdir(path):
            return cls(with_engine(open_exported(Path(path)), engine or "onnx"), device)
        if engine not in (None, "torch"):
            raise ConfigError(
                f"{path} is computed by torch; export it for engine {engine!r:.40}: manylabel export {path} --out FILE"
            )
        with needs_train("a run or a bundle"):
            from manylabel.bundle import load_bundle

            return cls(load_bundle(Path(path)), device)

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.bundles if self.file is None else self.file.tasks)

    def of(self, task: str | None = None, score: float | None = None) -> AnyTaskPredictor:
        """That of one task; None = of the only one. `score`: of a task that finds objects, the lowest that is reported."""
        if task is None and len(self.tasks) > 1:
            raise ConfigError(f"this model has several tasks; choose one: {', '.join(self.tasks)}")
        name = self.tasks[0] if task is None else task
        if name not in self.tasks:
            raise ConfigError(f"there is no task {name!r} among {', '.join(self.tasks)}{closest(name, self.tasks)}")
        if self.finds_objects(name):
            from manylabel.inference.objects import ObjectPredictor

            return ObjectPredictor(self.bundles[name], self.device, min(self.batch_size, OBJECTS_AT_ONCE), score)
        if score is not None:
            raise ConfigError(f"score is for objects; task {name} gives labels, each with a threshold of its own")
        if name not in self._of:
            self._of[name] = self._labels(name)
        return self._of[name]

    def _labels(self, name: str) -> AnyTaskPredictor:
        if self.file is not None:
            return ExportedLabels(self.file, name, self.batch_size)
        from manylabel.inference.labels import LabelPredictor

        return LabelPredictor(self.bundles[name], self.device, self.batch_size, self._engine)

    def finds_objects(self, task: str) -> bool:
        return self.file is None and self.bundles[task].task.finds_objects

    # --- what a model with one task has ---------------------------------------------------------------------------------

    @property
    def bundle(self) -> TaskBundle:
        found: Any = self.of()
        bundle: TaskBundle = found.bundle
        return bundle

    @property
    def model(self) -> Any:
        found: Any = self.of()
        return found.model

    @property
    def labels(self) -> tuple[str, ...]:
        return self.of().labels

    def for_labels(
        self,
        labels: Sequence[str],
        *,
        vectors: np.ndarray | None = None,
        text_file: str | None = None,
        task: str | None = None,
    ) -> Predictor:
        """The same model on torch, asked about other labels; it must be a zero-shot one. See `with_new_labels`."""
        found: Any = self.of(task)
        trained = found.bundle  # of an exported file an error
        from manylabel.new_labels import with_new_labels

        bundle = with_new_labels(trained, labels, vectors=vectors, text_file=text_file)
        return Predictor(bundle, self.device, self.batch_size)

    # --- predictions ----------------------------------------------------------------------------------------------------

    def predict(
        self,
        images: ImageLike | Iterable[ImageLike],
        task: str | None = None,
        score: float | None = None,
        workers: int = 0,
    ) -> list[Any]:
        """One answer per image, in order; of several tasks without `task` a dict of them by name. What is an image:
        `manylabel.data.given_image`. `workers`: threads that decode images ahead of the model.

        One image alone that cannot be read raises a DecodeError; among several it gives an answer with an `error`.
        """
        return list(self.stream(images, task=task, score=score, workers=workers))

    def stream(
        self,
        images: ImageLike | Iterable[ImageLike],
        advance: Callable[[int], None] = lambda _: None,
        task: str | None = None,
        score: float | None = None,
        workers: int = 0,
    ) -> Iterator[Any]:
        """The same one by one, for any number of images in bounded memory."""
        if task is not None or len(self.tasks) == 1:
            name = self.tasks[0] if task is None else task
            return (answers[name] for answers in _stream({name: self.of(name, score)}, images, advance, workers))
        each = {name: self.of(name, score if self.finds_objects(name) else None) for name in self.tasks}
        return _stream(each, images, advance, workers)


def _stream(
    each: Mapping[str, AnyTaskPredictor],
    images: ImageLike | Iterable[ImageLike],
    advance: Callable[[int], None],
    workers: int,
) -> Iterator[dict[str, Any]]:
    """Answers by task; an image is read once for all of them."""
    sides = [one.at_least for one in each.values()]
    at_least = None if None in sides else max(side for side in sides if side is not None)
    prepared = Decoding({name: one.prepared for name, one in each.items()}, at_least).stream(images, workers)
    while batch := list(islice(prepared, min(one.batch_size for one in each.values()))):
        for answers in zip(*(one.answers(batch, name) for name, one in each.items()), strict=True):
            yield dict(zip(each, answers, strict=True))
        advance(len(batch))
