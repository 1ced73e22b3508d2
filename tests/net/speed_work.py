"""What speed.py measures, in this tree's words: a worker that prepares a row once and then measures it when asked.

It is started as `python -P speed_work.py DATA SCRATCH`, says in one line of JSON which rows it has, and answers each
line {"row": NAME} with one line. It uses what users have: the command line, `import manylabel as ml`, a run's files.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

# Frozen features at a side at which they cost little; everything in this process, and no checkpoint by the clock.
LITE = [
    "backbone.name=efficientnet_lite0",
    "backbone.image_size=96",
    "backbone.freeze=frozen",
    "train.extract_with=torch",
]
CALM = ["data.workers=0", "train.checkpoint_minutes=1000"]
SEVERAL: dict[str, Any] = {
    "tasks": {
        "labels": {"kind": "multi_label", "image_size": 64, "batch_size": 4, "augment": {"flip": True}},
        "objects": {
            "kind": "detection",
            "image_size": 64,
            "batch_size": 2,
            "augment": {"flip": True},
            "head": {
                "name": "cascade",
                "width": 16,
                "levels": [1],
                "proposals": 20,
                "test_proposals": 20,
                "box_samples": 16,
                "anchor_samples": 32,
                "box_hidden": 32,
                "mask_width": 8,
                "mask_layers": 1,
                "score": 0.0,  # as many objects are found whatever was learnt, so that there is as much to do
            },
        },
    },
    "backbone": {
        "name": "moe_vit",
        "weights": "none",
        "freeze": "full",
        "options": {
            **{"size": "own", "layers": 2, "heads": 2, "width": 32, "hidden": 64, "patch": 8},
            "experts": {"count": 4},
            "k": 2,  # always as many experts, for the same reason
        },
    },
    "optimiser": {"backbone_rate": 1.0},
    "train": {"checkpoint_minutes": 1000},
}


class Time(NamedTuple):
    """Seconds on the wall, and of the processor in this process and those that it waited for."""

    wall: float
    cpu: float

    def since(self, before: Time) -> Time:
        return Time(self.wall - before.wall, self.cpu - before.cpu)


class Done(NamedTuple):
    """How much a unit of work did, to see that both trees did the same; and its time, where not all of it counts."""

    count: int
    time: Time | None = None


Unit = Callable[[], Done]


@dataclass(frozen=True)
class Place:
    """Where the data is, and where files may be left."""

    data: Path
    scratch: Path

    @contextmanager
    def run(self) -> Iterator[Path]:
        """A folder for a run that is thrown away."""
        with TemporaryDirectory(dir=self.scratch) as folder:
            yield Path(folder) / "run"

    @contextmanager
    def cold(self) -> Iterator[Path]:
        """With an empty cache, in which nothing of earlier runs is found."""
        cache = Path(os.environ["MANYLABEL_CACHE"])
        kept = cache.with_name("kept")
        cache.mkdir(parents=True, exist_ok=True)
        cache.rename(kept)
        try:
            yield cache
        finally:
            shutil.rmtree(cache, ignore_errors=True)
            kept.rename(cache)

    def trained(self) -> Path:
        """A finished run of one task."""
        return self._kept("one", lambda out: train(self.data / "small", out, [*LITE, *CALM, "train.epochs=1"]))

    def trained_several(self) -> Path:
        """A finished run of several tasks."""
        return self._kept("several", lambda out: train_several(self, out, 5))

    def _kept(self, name: str, make: Callable[[Path], None]) -> Path:
        folder = self.scratch / name
        if not (folder / "results.json").is_file():
            make(folder)
        return folder


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    needs: tuple[str, ...]  # parts of the data
    prepare: Callable[[Place], Unit]


ROWS: dict[str, Row] = {}


def row(name: str, what: str, *needs: str) -> Callable[[Callable[[Place], Unit]], Callable[[Place], Unit]]:
    def add(prepare: Callable[[Place], Unit]) -> Callable[[Place], Unit]:
        ROWS[name] = Row(what, needs, prepare)
        return prepare

    return add


# --- training -----------------------------------------------------------------------------------------------------


def train(data: Path, out: Path, settings: list[str]) -> None:
    import manylabel as ml

    ml.train(data, out=out, settings=settings)


def train_several(place: Place, out: Path, steps: int) -> None:
    import manylabel as ml

    recipe = place.scratch / "several.yaml"
    recipe.write_text(json.dumps(SEVERAL), encoding="utf-8")  # JSON is YAML, too
    settings = [f"train.steps={steps}"]
    for task in SEVERAL["tasks"]:
        settings += [f"tasks.{task}.data.path={place.data / 'objects' / 'labels.json'}", f"tasks.{task}.data.workers=0"]
    ml.train(out=out, recipe=str(recipe), settings=settings)


class Enough(BaseException):
    """Ends a training whose first steps were measured; no error, so that nobody takes it for one."""


def steps(count: int, train: Callable[[], None]) -> Done:
    """The loop without what comes before and behind it: from the first change of the weights to that of this number."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    seen: list[Time] = []

    def note(*_: Any) -> None:
        seen.append(now())
        if len(seen) == count:
            raise Enough

    hook = register_optimizer_step_post_hook(note)
    try:
        train()
    except Enough:
        pass
    finally:
        hook.remove()
    return Done(len(seen), seen[-1].since(seen[0]))


def _steps_of(place: Place, count: int, data: str, settings: list[str]) -> Unit:
    def unit() -> Done:
        with place.run() as out:
            return steps(count, lambda: train(place.data / data, out, [*settings, *CALM]))

    return unit


@row("step-linear", "192 steps, linear head on cached features", "small")
def _(place: Place) -> Unit:
    return _steps_of(place, 192, "small", [*LITE, "head.name=linear", "train.batch_size=8"])


@row("step-ml-decoder", "16 steps, ml_decoder on cached features", "small")
def _(place: Place) -> Unit:
    return _steps_of(place, 16, "small", [*LITE, "head.name=ml_decoder", "train.batch_size=32"])


@row("step-full", "8 steps of all weights, from JPEG files", "photos")
def _(place: Place) -> Unit:
    full = ["backbone.name=efficientnet_lite0", "backbone.image_size=64", "backbone.freeze=full"]
    return _steps_of(place, 8, "photos", [*full, "augment.flip=true", "train.batch_size=16"])


@row("step-several", "30 steps of labels and boxes, sparse experts", "objects")
def _(place: Place) -> Unit:
    def unit() -> Done:
        with place.run() as out:
            return steps(30, lambda: train_several(place, out, 600))

    return unit


@row("run", "a whole small run on cached features", "small")
def _(place: Place) -> Unit:
    def unit() -> Done:
        with place.run() as out:
            train(place.data / "small", out, [*LITE, *CALM, "train.epochs=2"])
            return Done((out / "report.html").is_file())

    return unit


@row("extract", "features of 160 photos, and a run on them", "photos")
def _(place: Place) -> Unit:
    def unit() -> Done:
        with place.cold() as cache, place.run() as out:
            train(place.data / "photos", out, [*LITE, *CALM, "train.epochs=1"])
            return Done(sum(1 for file in cache.rglob("*.bin")))

    return unit


# --- using a model ------------------------------------------------------------------------------------------------


@row("evaluate", "one task, 160 photos", "small", "photos")
def _(place: Place) -> Unit:
    import manylabel as ml

    run = place.trained()

    def unit() -> Done:
        results, _ = ml.evaluate(run, data=str(place.data / "photos"), settings=["data.workers=0"])
        return Done(results["data"]["images"])

    return unit


@row("evaluate-several", "labels and boxes of 32 pictures", "objects")
def _(place: Place) -> Unit:
    import manylabel as ml

    run = place.trained_several()

    def unit() -> Done:
        results, _ = ml.evaluate(run, data=str(place.data / "objects" / "labels.json"))
        return Done(sum(task["images"] for task in results["tasks"].values()))

    return unit


@row("predict", "one task, 160 JPEG files", "small", "photos")
def _(place: Place) -> Unit:
    import manylabel as ml

    predictor = ml.Predictor.load(place.trained())
    files = sorted((place.data / "photos" / "images").iterdir())
    return lambda: Done(sum(len(one.labels) for one in predictor.predict(files)))


@row("predict-several", "labels and boxes of 60 JPEG files", "objects")
def _(place: Place) -> Unit:
    import manylabel as ml

    predictor = ml.Predictor.load(place.trained_several())
    files = sorted((place.data / "objects" / "images").iterdir())[:60]

    def unit() -> Done:
        labels = predictor.predict(files, "labels")
        boxes = predictor.predict(files, "objects", score=0.0)
        return Done(sum(len(one.labels) for one in labels) + sum(one.error is None for one in boxes))

    return unit


# --- data and figures ---------------------------------------------------------------------------------------------


@row("read-csv", "100,000 rows", "many")
def _(place: Place) -> Unit:
    return _read(place.data / "many" / "labels.csv")


@row("read-coco", "20,000 boxes in 5,000 images", "many")
def _(place: Place) -> Unit:
    return _read(place.data / "many" / "coco.json")


@row("read-voc", "800 images, five times", "voc")
def _(place: Place) -> Unit:
    return again(5, _read(place.data / "voc"))


def _read(path: Path) -> Unit:
    import manylabel as ml

    return lambda: Done(len(ml.load_data(path)))


@row("check", "manylabel data check, 160 photos, three times", "photos")
def _(place: Place) -> Unit:
    findings = place.scratch / "findings.json"

    def unit() -> Done:
        findings.unlink(missing_ok=True)
        with place.cold():  # what a check has found is kept for the next one
            command("data", "check", str(place.data / "photos"), "--json", str(findings), "--set", "data.workers=0")
        return Done(json.loads(findings.read_text(encoding="utf-8"))["images"])

    return again(3, unit)


@row("average-precision", "20,000 images, 200 labels, twenty times")
def _(place: Place) -> Unit:
    """The one row that reaches inside: in public the figure comes with work that takes much longer than it does."""
    import numpy as np

    average_precision = defined("average_precision")
    random = np.random.default_rng(0)
    targets = (random.random((20_000, 200)) < 0.03).astype(np.int8)
    scores = (random.random(targets.shape) + 0.3 * targets).astype(np.float32)
    return again(20, lambda: Done(len(average_precision(scores, targets))))


@row("figures", "thresholds and all figures of 20,000 images, 80 labels, three times")
def _(place: Place) -> Unit:
    """F1, calibration and the rest beside average precision, without the images that `evaluate` decodes first."""
    import numpy as np

    from manylabel.evaluation import judge
    from manylabel.labels import LabelSpace
    from manylabel.metric import fit_thresholds

    random = np.random.default_rng(1)
    targets = (random.random((20_000, 80)) < 0.05).astype(np.int8)
    scores = random.beta(1 + 2 * targets, 3).astype(np.float32)
    labels = LabelSpace(tuple(f"label {number}" for number in range(80)))

    def unit() -> Done:
        results = judge(scores, targets, labels, fit_thresholds(scores, targets), fitted_here=True)
        return Done(len(results["labels"]))

    return again(3, unit)


@row("start", "python -m manylabel --help, three times")
def _(place: Place) -> Unit:
    def unit() -> Done:
        asked = [sys.executable, "-m", "manylabel", "--help"]
        return Done(b"train" in subprocess.run(asked, stdout=subprocess.PIPE, check=True).stdout)

    return again(3, unit)


def again(times: int, unit: Unit) -> Unit:
    """A short unit several times: what takes less than a third of a second is measured badly."""
    return lambda: Done(sum(unit().count for _ in range(times)))


def command(*words: str) -> None:
    """`manylabel WORDS` in this process, whose imports have been done."""
    kept = sys.argv
    sys.argv = ["manylabel", *words]
    try:
        runpy.run_module("manylabel", run_name="__main__")
    except SystemExit as end:
        if end.code not in (0, None):
            raise RuntimeError(f"manylabel {' '.join(words)} ended with {end.code}") from end
    finally:
        sys.argv = kept


def defined(function: str) -> Any:
    """A function of the package, wherever it lives now."""
    import manylabel

    root = Path(str(manylabel.__file__)).parent
    for file in sorted(root.rglob("*.py")):
        if f"\ndef {function}(" in file.read_text(encoding="utf-8"):
            return getattr(
                importlib.import_module(".".join(file.relative_to(root.parent).with_suffix("").parts)), function
            )
    raise LookupError(f"no module of the package defines {function}")


# --- the worker ---------------------------------------------------------------------------------------------------


def now() -> Time:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Time(time.perf_counter(), sum(one.ru_utime + one.ru_stime for one in spent))


def measure(unit: Unit) -> dict[str, Any]:
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # what other rows left behind is none of its work
    before = now()
    done = unit()
    spent = done.time or now().since(before)
    return {"wall": spent.wall, "cpu": spent.cpu, "count": int(done.count)}


def main(data: str, scratch: str) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # what anything else prints is no answer
    import torch

    import manylabel

    torch.set_num_threads(1)
    place = Place(Path(data), Path(scratch))
    rows = {name: {"what": one.what, "needs": one.needs} for name, one in ROWS.items()}
    print(json.dumps({"package": str(manylabel.__file__), "rows": rows}), file=answers)
    units: dict[str, Unit] = {}
    for line in sys.stdin:
        name = json.loads(line)["row"]
        try:
            if name not in units:
                units[name] = ROWS[name].prepare(place)
                units[name]()  # the first time fills caches
            answer = measure(units[name])
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
