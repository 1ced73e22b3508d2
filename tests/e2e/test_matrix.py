"""Everything goes with everything: backbones, necks, heads, one task or two, pixels or cached features, one process or two.

Each combination trains two steps, is stopped after the first and resumed to the same bits, loaded, asked and explained.
All pairs of settings run in `make test`, the whole product at night.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warm
from PIL import Image

import manylabel as ml
from manylabel import run
from manylabel.data.scenes import scene_image
from manylabel.explain import explain
from manylabel.stop import Stopped
from manylabel.storage.atomic import sha256
from manylabel.training.loop import Trainer

SCENES = {"path": "scenes", "workers": 0, "scenes": {"train": 8, "val": 4, "size": 64}}
SMALL = {"dim": 16, "heads": 2, "hidden": 16}
CASCADE = {
    "name": "cascade",
    "width": 16,
    "levels": [1],
    "proposals": 10,
    "test_proposals": 10,
    "box_samples": 8,
    "anchor_samples": 16,
    "box_hidden": 16,
    "mask_width": 8,
    "mask_layers": 1,
    "score": 0.0,
    "most": 4,
}
HEADS: dict[str, dict[str, Any]] = {
    "linear": {"name": "linear"},
    "ml_decoder": {"name": "ml_decoder", **SMALL},
    "query2label": {"name": "query2label", **SMALL},
    "hsq": {"name": "hsq", **SMALL},
    "hsq_linear": {"name": "hsq_linear", **SMALL},
    "cascade": CASCADE,
}
VIT = {"size": "own", "layers": 4, "heads": 2, "width": 16, "hidden": 32, "patch": 8, "experts": {"count": 4}, "k": 2}
AXES: dict[str, list[Any]] = {
    "backbone": ["test_efficientnet", "moe_vit"],
    "neck": ["none", "rm", "concat"],
    "head": list(HEADS),
    "tasks": [1, 2],
    "inputs": ["pixels", "cache"],
    "processes": [1, 2],
}
Case = tuple[Any, ...]


def makes_sense(case: Case) -> bool:
    """A detector draws its boxes anew in every epoch, so its features are not cached."""
    chosen = dict(zip(AXES, case, strict=True))
    return not (chosen["head"] == "cascade" and chosen["inputs"] == "cache")


PRODUCT = [case for case in itertools.product(*AXES.values()) if makes_sense(case)]


def pairs_of(case: Case) -> set[Any]:
    return set(itertools.combinations(enumerate(case), 2))


def all_pairs() -> list[Case]:
    """Few cases that hold every pair of settings that any case holds: each time the one with most new pairs."""
    missing = set().union(*map(pairs_of, PRODUCT))
    chosen = []
    while missing:
        best = max(PRODUCT, key=lambda case: len(pairs_of(case) & missing))
        chosen.append(best)
        missing -= pairs_of(best)
    return chosen


PAIRS = all_pairs()
QUICK = [case for case in PAIRS if case[-1] == 1][:2]


def named(case: Case) -> str:
    return "-".join(map(str, case))


def cases() -> Iterator[Any]:
    for case in PRODUCT:
        marks = () if case in PAIRS else (pytest.mark.nightly,)
        slow = () if case in QUICK else (pytest.mark.slow,)
        yield pytest.param(case, id=named(case), marks=(*marks, *slow))


def recipe_of(case: Case) -> dict[str, Any]:
    backbone, neck, head, tasks, inputs, _ = case
    task: dict[str, Any] = {
        "kind": "detection" if head == "cascade" else "multi_label",
        "data": SCENES,
        "batch_size": 2,
        "head": HEADS[head],
        "neck": "none" if neck == "none" else {"name": neck, "stages": ["stage-2"]},
    }
    other = {"data": SCENES, "batch_size": 4}
    named = {"objects" if head == "cascade" else "labels": task, **({"more": other} if tasks == 2 else {})}
    train = {"steps": 2, "ema": 0.5, "checkpoint_minutes": 1000, "cache": "on" if inputs == "cache" else "off"}
    if inputs == "pixels":
        train["adapt"] = {"enabled": backbone == "moe_vit", "every": 1, "patience": 1, "held_out": 0.25}
    return {
        "tasks": named,
        "backbone": {
            "name": backbone,
            "weights": "none",
            "image_size": 64,
            "freeze": "partial" if inputs == "cache" else "full",
            "options": VIT if backbone == "moe_vit" else {},
        },
        "optimiser": {"lr": 0.01, "backbone_rate": 1.0},
        "train": train,
    }


def trained(case: Case, out: Path, stop_after: int | None = None) -> None:
    """In this process, or in two of their own."""
    if case[-1] == 1:
        _trained_here(recipe_of(case), out, stop_after)
        return
    done = warm.run(__file__, json.dumps([recipe_of(case), str(out), stop_after]), processes=2)
    assert done.returncode == 0, done.stderr[-3000:]


def _trained_here(recipe: dict[str, Any], out: Path, stop_after: int | None) -> None:
    """Whole, or stopped after so many steps and resumed."""
    if stop_after is None:
        run.train(out=out, recipe=recipe)
        return
    step = Trainer._between_steps

    def stopping(self: Trainer) -> None:
        if self.state.step == stop_after:
            self.stop.signal = 15
        step(self)

    Trainer._between_steps = stopping  # type: ignore[method-assign]
    try:
        run.train(out=out, recipe=recipe)
    except Stopped:
        pass
    finally:
        Trainer._between_steps = step  # type: ignore[method-assign]
    run.train(out=out, resume=True)


@pytest.mark.parametrize("case", cases())
def test_a_combination_trains_resumes_predicts_and_explains(case: Case, tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    trained(case, whole)
    trained(case, parts, stop_after=1)
    assert sha256(parts / "bundle" / "weights.safetensors") == sha256(whole / "bundle" / "weights.safetensors")
    predictor = ml.Predictor.load(whole)
    picture = Image.fromarray(scene_image(0, 5, 96))
    (answer,) = predictor.predict(picture)
    assert set(answer if len(predictor.tasks) > 1 else predictor.tasks) == set(recipe_of(case)["tasks"])
    results, _ = run.evaluate(whole)
    told = json.loads((whole / "results.json").read_text())
    of_all = (results["tasks"], told["tasks"]) if "tasks" in told else ({"labels": results}, {"labels": told})
    for name, figures in of_all[0].items():
        goal = figures["figures"][figures["goal"]] if "figures" in figures else figures["mAP"]
        before = of_all[1][name]
        assert goal == pytest.approx(
            before["figures"][before["goal"]] if "figures" in before else before["mAP"], abs=0.05
        )
    for task in predictor.tasks:
        if not predictor.finds_objects(task):
            (shown, *_) = explain(predictor, picture, task=task)
            assert np.isfinite(shown.map).all()


def test_every_pair_of_settings_is_tried_and_the_rest_at_night() -> None:
    tried = set().union(*map(pairs_of, PAIRS))
    assert tried == set().union(*map(pairs_of, PRODUCT))
    assert len(PAIRS) < len(PRODUCT) / 4


if __name__ == "__main__":
    given_recipe, given_out, given_stop = json.loads(sys.argv[1])
    _trained_here(given_recipe, Path(given_out), given_stop)
