"""Time and memory of a step of any heads at any number of labels: what growing to thousands of labels costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from rich import box
from rich.table import Table
from torch import nn

from benchmarks.cost import options_of
from benchmarks.memory import peak_megabytes
from manylabel.allocator import keep_memory
from manylabel.config import Part
from manylabel.features import FINAL, Features
from manylabel.head import HEADS
from manylabel.runtime.rich_console import Terminal

CHANNELS, GRID = 1280, 7  # EfficientNet-Lite0 at 224 px
BATCH = 32
LABELS = (80, 1000, 10_000)
USUAL = ("ml_decoder", "hsq")
SIZES = {"dim": 256, "heads": 8, "hidden": 512, "encoder_layers": 0, "decoder_layers": 1}  # one decoder layer for all
REPEATS = 5


@dataclass(frozen=True)
class Speed:
    """One head at one number of labels, beside the first head at the same number."""

    head: str
    labels: int
    parameters: int
    eval_ms: float
    train_ms: float
    peak_mb: float | None  # of a training step, beyond features and weights
    eval_ratio: float  # to the first head
    train_ratio: float


def speeds(heads: Sequence[str], labels: Sequence[int], options: Mapping[str, Any], batch: int = BATCH) -> list[Speed]:
    """Medians; at each number of labels the heads take turns, so that a busy machine slows all alike."""
    keep_memory()
    options_of(heads, options)
    features = Features({FINAL: torch.randn(batch, CHANNELS, GRID, GRID)})
    rows = []
    for count in labels:
        built = {name: build(name, options, count) for name in heads}
        times = {
            mode: take_turns({name: step(head, features, mode) for name, head in built.items()})
            for mode in ("eval", "train")
        }
        for name, head in built.items():
            rows.append(
                Speed(
                    name,
                    count,
                    sum(p.numel() for p in head.parameters()),
                    1000 * times["eval"][name],
                    1000 * times["train"][name],
                    peak_megabytes(step(head, features, "train")),
                    times["eval"][name] / times["eval"][heads[0]],
                    times["train"][name] / times["train"][heads[0]],
                )
            )
    return rows


def build(name: str, options: Mapping[str, Any], labels: int) -> nn.Module:
    known = HEADS.get(name).Options.__dataclass_fields__
    chosen = {key: value for key, value in {**SIZES, **options}.items() if key in known}
    if (chosen.get("groups") or 0) > labels:
        chosen["groups"] = labels
    head: nn.Module = HEADS.build(Part(name, chosen), channels={FINAL: CHANNELS}, num_labels=labels)
    return head


def step(head: nn.Module, features: Features, mode: str) -> Callable[[], None]:
    """One forward pass, or one forward and backward pass."""

    def judge() -> None:
        with torch.inference_mode():
            head.eval()(features)

    def train() -> None:
        head.train().zero_grad(set_to_none=True)
        head(features).logits.square().mean().backward()

    return train if mode == "train" else judge


def take_turns(steps: Mapping[str, Callable[[], None]]) -> dict[str, float]:
    """Median seconds of each, run alternately after one warm-up."""
    for run in steps.values():
        run()
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(REPEATS):
        for name, run in steps.items():
            start = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def print_speeds(rows: Sequence[Speed], batch: int = BATCH) -> None:
    title = f"one step of the head, batch {batch}, {GRID}×{GRID}×{CHANNELS} features; ratios to the first head"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column("head")
    for name in ("labels", "M", "eval ms", "×", "train ms", "×", "peak MB"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.head,
            f"{row.labels:,}",
            f"{row.parameters / 1e6:.2f}",
            f"{row.eval_ms:.0f}",
            f"{row.eval_ratio:.2f}",
            f"{row.train_ms:.0f}",
            f"{row.train_ratio:.2f}",
            "–" if row.peak_mb is None else f"{row.peak_mb:.0f}",
        )
    Terminal().print(table)
