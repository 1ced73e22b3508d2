"""What many cases start from, made once: photos, finished runs, a run that was stopped, features in a cache."""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from command import TINY, settings
from hostile.child import Limits, Manners, start
from net.kept_runs import ARCHIVE, unpack
from PIL import Image
from safetensors import safe_open
from small_tasks import SMALL

PARTS = ["train"] * 16 + ["val"] * 8 + ["test"] * 4
COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220), "white": (240, 240, 240)}
QUICK = [*settings(*TINY, "data.workers=0", "train.epochs=1")]
LONG = [*settings(*TINY, "data.workers=0", "train.epochs=40", "train.checkpoint_minutes=0", "train.batch_size=8")]
SEEING = [
    *settings("backbone.name=test_efficientnet", "backbone.weights=none", "backbone.image_size=64", "data.workers=0"),
    *settings("optimiser.lr=0.01", "train.batch_size=8", "train.epochs=60"),
    *("--transfer", "ft"),
]
LONG_TASKS = [*settings("train.steps=60", "train.checkpoint_minutes=0")]


@dataclass
class Kit:
    """folder/photos (images/, labels.csv), small.yaml, run, other, half, long, tasks, long-tasks, half-tasks, seeing,
    seeing-tasks, earlier (a run of tasks that an earlier version left), cache/, photo.jpg

    All but `seeing` and `seeing-tasks` are trained for moments: their scores depend little on what is in an image.
    """

    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def photos(self) -> Path:
        return self.folder / "photos"

    @property
    def one_photo(self) -> Path:
        return self.folder / "photo.jpg"

    def make(self, say: Callable[[str], None] = lambda _: None) -> Kit:
        self.folder.mkdir(parents=True)
        write_labelled_photos(self.photos)
        shutil.copy2(self.photos / "images" / "photo000.jpg", self.one_photo)
        (self.folder / "small.yaml").write_text(yaml.safe_dump(small_recipe()))
        for name in ("home", "tmp", "matplotlib"):
            (self.folder / name).mkdir()
        unpack(ARCHIVE, self.folder / "kept")
        shutil.copytree(self.folder / "kept" / "runs" / "tasks", self.folder / "earlier")
        data, recipe = str(self.photos), str(self.folder / "small.yaml")
        self._make("run", ["train", data, *QUICK])
        self._make("other", ["train", data, *QUICK, "--seed", "1", "--set", "optimiser.lr=0.01"])
        self._make("tasks", ["train", "--recipe", recipe])
        (self.folder / "seeing.yaml").write_text(yaml.safe_dump(seeing_recipe(self.photos)))
        self._make("seeing-tasks", ["train", "--recipe", str(self.folder / "seeing.yaml")])
        self._make("seeing", ["train", data, *SEEING])
        self._check_that_they_see()
        self._make("long", ["train", data, *LONG])
        self._make("half", ["train", data, *LONG], stop=True)
        self._make("long-tasks", ["train", "--recipe", recipe, *LONG_TASKS])
        self._make("half-tasks", ["train", "--recipe", recipe, *LONG_TASKS], stop=True)
        say("; ".join(f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items()))
        return self

    def _make(self, name: str, words: list[str], stop: bool = False) -> None:
        def work() -> int:
            from manylabel.cli import main

            sys.argv = ["manylabel", *words, "--out", str(self.folder / name)]
            main()
            return 0

        self._do(name, work, stop)

    def _check_that_they_see(self) -> None:
        """That what is trained to see tells a photo from others that share much with it."""

        def work() -> int:
            import manylabel as ml

            photo = Image.open(self.one_photo).convert("RGB")
            pixels = np.asarray(photo)
            others = [np.zeros_like(pixels), np.full_like(pixels, 128), np.full_like(pixels, 255), pixels[..., ::-1]]
            others += [pixels // 2, photo.convert("L")]
            one = ml.Predictor.load(self.folder / "seeing").predict([photo, *others])
            several = ml.Predictor.load(self.folder / "seeing-tasks").predict([photo, *others], "labels")
            for found in (one, several):
                scores = [{label.label: label.score for label in each.labels} for each in found]
                near = [max(abs(each[name] - scores[0][name]) for name in COLOURS) for each in scores[1:]]
                if min(near) < 0.1:
                    raise SystemExit(f"the model sees too little: so near are other pictures: {near}")
            return 0

        self._do("sees", work)

    def _do(self, name: str, work: Callable[[], int], stop: bool = False) -> None:
        out, errors = self.folder / f"{name}.out", self.folder / f"{name}.err"
        env = {
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "MPLCONFIGDIR": str(self.folder / "matplotlib"),
            "PATH": os.environ.get("PATH", ""),
            "OMP_NUM_THREADS": "1",
        }

        began = time.monotonic()
        limits = Limits(cpu=300, wall=900, memory=0, sleeping=60)
        process = start(work, Manners(self.folder, env), limits, out, errors)
        if stop:
            process.wait(lambda: len(list((self.folder / name / "checkpoints").glob("step-*.json"))) > 1)
            process.kill(signal.SIGTERM)
        ending = process.wait()
        assert ending is not None
        self.seconds[name] = time.monotonic() - began
        if ending.code != (143 if stop else 0):
            said = errors.read_text(errors="replace")[-2000:]
            raise SystemExit(f"the kit could not be made: {name}: exit code {ending.code}: {said}")


def quick_without(*keys: str) -> list[str]:
    """QUICK, but for these settings, which a case gives itself."""
    values = [word for word in QUICK if word != "--set"]
    return settings(*(word for word in values if word.split("=")[0] not in keys))


def small_recipe() -> dict[str, Any]:
    recipe = deepcopy(SMALL)
    for task in recipe["tasks"].values():
        task["data"]["scenes"] = {"train": 12, "val": 4, "size": 64}
    recipe["train"] = {**recipe["train"], "steps": 4}
    return recipe


def seeing_recipe(photos: Path) -> dict[str, Any]:
    """Two tasks of the same labels: quick to train, and enough to be several."""
    recipe = small_recipe()
    one = {**recipe["tasks"]["labels"], "data": {"path": str(photos), "workers": 0}, "batch_size": 8}
    recipe["tasks"] = {"labels": one, "again": deepcopy(one)}
    recipe["train"] = {**recipe["train"], "steps": 150}
    recipe["optimiser"] = {**recipe["optimiser"], "name": "adamw", "lr": 0.01}
    return recipe


def write_labelled_photos(folder: Path, parts: list[str] = PARTS, seed: int = 0) -> Path:
    """Photos of coloured patches, and the labels.csv that belongs to them."""
    dice = np.random.default_rng(seed)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for number, part in enumerate(parts):
        labels = [name for name in COLOURS if dice.random() < 0.5]
        Image.fromarray(drawn(labels, dice)).save(folder / "images" / f"photo{number:03d}.jpg", quality=92)
        rows.append([f"photo{number:03d}.jpg", "|".join(labels), part])
    with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["file_name", "labels", "split"], *rows])
    return folder


def drawn(labels: list[str], dice: np.random.Generator) -> np.ndarray:
    """A grey noise with a patch of each colour, and shapes of its own: no two are near-duplicates."""
    ground = np.kron(dice.integers(40, 200, (6, 8, 3)), np.ones((12, 12, 1)))
    pixels = (ground + dice.integers(-12, 12, (72, 96, 3))).clip(0, 255).astype(np.uint8)
    for name in labels:
        y, x = dice.integers(0, 48), dice.integers(0, 72)
        pixels[y : y + 24, x : x + 24] = COLOURS[name]
    return pixels


def weights_of(run: Path) -> str:
    """sha256 of the tensors of a run's bundle: the same weights, the same text."""
    digest = hashlib.sha256()
    with safe_open(run / "bundle" / "weights.safetensors", framework="pt") as file:
        for name in sorted(file.keys()):
            digest.update(name.encode() + file.get_tensor(name).contiguous().numpy().tobytes())
    return digest.hexdigest()
