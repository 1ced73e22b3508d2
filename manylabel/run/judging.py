"""Judging a finished model: what `manylabel evaluate` and `manylabel.evaluate` do."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manylabel import console
from manylabel.allocator import keep_memory
from manylabel.bundle import Bundle, check_answer, find_bundle, load_bundle
from manylabel.config import Config, DataConfig, load_yaml, make_config, parse, plain
from manylabel.data.bad_images import BadImages
from manylabel.data.read import read_table
from manylabel.data.sampler import EpochBatches
from manylabel.data.shard.blocks import blocks_of
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.evaluation import describe, details, judge
from manylabel.expert_use import use_details, use_figures, use_of_labels
from manylabel.explain.shown_images import with_overlays
from manylabel.hard_section import hard_details
from manylabel.mixing import shares_of_labels
from manylabel.model import Model
from manylabel.run.data_paths import with_absolute_paths
from manylabel.run.folder import fingerprint
from manylabel.run.judged_part import TRAINED_ON, judged_part
from manylabel.run.trained_images import NOT_KNOWN, find_trained, overlap_facts, read_trained
from manylabel.training.feed import PixelFeed
from manylabel.training.history import read_history
from manylabel.training.processes import make_accelerator
from manylabel.training.scoring import Scored, score


def chosen_here(bundle: Bundle) -> str:
    of_what = " of the seen labels" if bundle.unseen is not None else ""
    return f"the epoch was chosen by the {bundle.task.goal}{of_what} on these images, which flatters it a little"


def evaluate(
    run: str | Path, *, data: str | None = None, split: str | None = None, settings: Iterable[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(results, details) of a run or bundle on `data` (default: what it was trained on), from the pixels on."""
    keep_memory()
    bundle = load_bundle(Path(run))
    home = find_bundle(Path(run)).parent
    trained_on = _training_data(home)
    same = trained_on is not None and (
        data is None or with_absolute_paths(DataConfig(path=data)).path == trained_on.path
    )
    if data is None and trained_on is None:
        raise DataError(f"what this model was trained on is not known here (no run in {home}); give images with --data")
    section = plain(trained_on) if same and trained_on else {"path": data, "workers": bundle.config.data.workers}
    config = make_config(None, settings, data=section)
    table = read_table(config.data)
    table, chosen = judged_part(table, split, home, same)
    read_notes = table.notes
    table = bundle.task.fit(table.with_labels(bundle.labels, bundle.hierarchy), training=False)
    for note in table.notes:
        console.say(f"{table.name}: {note}")
    accelerator = make_accelerator()
    order = EpochBatches(
        np.arange(len(table)),
        64,
        shuffle=False,
        rank=accelerator.process_index,
        world=accelerator.num_processes,
        blocks=blocks_of(table.source, table.keys),
    )
    feed = PixelFeed(table, order, bundle.preprocess, workers=config.data.workers)
    known, seen = read_trained(home), feed.watch()
    bad = BadImages(len(table), config.data.max_bad_share)
    with console.counting("judging", len(table)) as advance:
        model = bundle.model.to(accelerator.device)
        scored = score(model, feed.batches(), accelerator, bundle.task, advance)
    check_answer(torch.from_numpy(scored.scores))
    bad.add(scored.bad)
    judged = table.subset(scored.rows)
    here = bool(bundle.fitted_on) and fingerprint(judged.keys) == bundle.fitted_on
    figures = judge_table(bundle, judged, scored, fitted_here=here)
    figures["notes"] += table.notes[len(read_notes) :]
    overlap = find_trained(known, seen.fingerprints(scored.rows, accelerator))
    figures = overlap_facts(overlap) | figures
    if same and chosen == "train":
        figures["notes"].append(TRAINED_ON)
    if here and bundle.config.train.keep == "best":
        figures["notes"].append(chosen_here(bundle))
    if overlap is None:
        figures["notes"].append(NOT_KNOWN)
    title = f"{bundle.config.head.name} on {bundle.config.backbone.name}"
    facts = {"name": table.name, "split": chosen or "all", "images": len(judged), "bad_images": len(bad)}
    results = describe(title, facts, model_facts(bundle.model, bundle.config), figures)
    history = read_history(Path(run) / "metrics.jsonl")
    return results, details_of(bundle, judged, scored, history)


def judge_table(bundle: Bundle, judged: Table, scored: Scored, *, fitted_here: bool) -> dict[str, Any]:
    figures = judge(
        scored.scores,
        judged.matrix,
        judged.labels,
        bundle.thresholds,
        fitted_here=fitted_here,
        hierarchy=bundle.hierarchy,
        task=bundle.task,
        unseen=bundle.unseen,
        vectors=bundle.vectors,
        training_images=bundle.training_images,
    )
    for label, use in zip(figures["labels"], use_of_labels(scored.use) or [], strict=False):
        label.update(use)
    for label, share in zip(figures["labels"], shares_of_labels(scored.shares, judged.matrix) or [], strict=False):
        label.update(share)
    if scored.use is not None and scored.use.gates.capacity is not None:
        figures["notes"].append("how many shared experts a label may use was found by its loss on the val images")
    return figures | use_figures(scored.use)


def _training_data(home: Path) -> DataConfig | None:
    """The data section of the run in this folder, where there is one."""
    stored = home / "config.yaml"
    return parse(Config, load_yaml(stored)).data if stored.is_file() else None


def model_facts(model: Model, config: Config) -> dict[str, Any]:
    everything, trained = model.parameter_counts()
    return {
        "backbone": config.backbone.name,
        "task": config.task,
        "neck": config.neck.name,
        "head": config.head.name,
        "loss": config.loss.name,
        "freeze": config.backbone.freeze,
        "image_size": model.backbone.preprocess.size,
        "parameters": everything,
        "trainable_parameters": trained,
        "gmacs": round(model.multiply_adds() / 1e9, 4),
    }


def details_of(bundle: Bundle, judged: Table, scored: Scored, history: list[dict[str, Any]]) -> dict[str, Any]:
    """What the report shows beside the figures, with maps of where the model looked."""
    found = details(scored.scores, judged.matrix, judged.labels, judged.keys, judged.source, history)
    overlaid = with_overlays(bundle, judged.source, found)
    return overlaid | hard_details(judged, scored.scores) | use_details(scored.use, judged.labels)
