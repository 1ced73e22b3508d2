"""Every head and every variant of it as ONNX: the same logits as torch, for batches of 1 and 5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from manylabel.config import Part, make_config
from manylabel.engine import export
from manylabel.engine.onnx import OnnxEngine
from manylabel.error import EngineError
from manylabel.features import Features
from manylabel.head import HEADS, LabelKnowledge

CHANNELS = {"stage4": 6, "final": 9}
STAGES = {"stage4": torch.randn(2, 6, 4, 6), "final": torch.randn(2, 9, 2, 3)}
SMALL = {"dim": 24, "heads": 4, "hidden": 20}
VARIANTS: list[tuple[str, int, dict[str, Any]]] = [
    ("linear", 1, {}),
    ("linear", 80, {}),
    ("linear", 9, {"attention": 0.5}),
    ("query2label", 7, SMALL),
    ("query2label", 7, {**SMALL, "self_attention": True, "encoder_layers": 0, "stages": ("stage4", "final")}),
    ("query2label", 3, {**SMALL, "positions": False}),
    ("ml_decoder", 1, SMALL),
    (
        "ml_decoder",
        5,
        {**SMALL, "stages": ("stage4",), "finest": 1},
    ),  # as fine as the final stage, which it does not see
    ("ml_decoder", 80, SMALL),
    ("ml_decoder", 1000, SMALL),
    ("ml_decoder", 10, {**SMALL, "groups": 4, "grouping": "random", "layers": 2}),
    ("ml_decoder", 10, {**SMALL, "groups": 4, "grouping": "text", "query": "learnable", "stages": ("stage4", "final")}),
    ("ml_decoder", 7, {**SMALL, "query": "text"}),
    ("ml_decoder", 7, {**SMALL, "query": "text", "pooling": "shared", "random_queries": 3, "query_noise": 0.1}),
    ("ml_decoder", 7, {**SMALL, "query": "text", "pooling": "text", "groups": 3}),
    ("ml_decoder", 7, {**SMALL, "pooling": "text", "groups": 3}),
    ("ml_decoder", 7, {**SMALL, "self_attention": True, "query": "learnable"}),
    ("hsq", 80, SMALL),
    ("hsq", 7, {**SMALL, "shared_experts": 3, "shared_reads": "shared", "task_experts": 2, "gate_hidden": 5}),
    ("hsq", 7, {**SMALL, "shared_experts": 3, "shared_reads": "shared", "shared_input": "pooled", "expert_hidden": 4}),
    ("hsq", 7, {**SMALL, "shared_experts": 3, "adaptive": True}),
    ("hsq", 1000, {**SMALL, "groups": 30, "classifier_hidden": 6}),
    ("hsq_linear", 5, SMALL),
    ("hsq", 150, {**make_config("hsq-ml-decoder").only.head.options, **SMALL}),
]
VARIANTS += [(name, 7, {}) for name in HEADS.names() if name not in {variant[0] for variant in VARIANTS}]


def _head(name: str, labels: int, options: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    knowledge = LabelKnowledge(np.random.default_rng(0).normal(size=(labels, 5)).astype(np.float32))
    return HEADS.build(Part(name, options), channels=CHANNELS, num_labels=labels, knowledge=knowledge)


@pytest.mark.parametrize(("name", "labels", "options"), VARIANTS, ids=str)
def test_onnx_equals_torch(name: str, labels: int, options: dict[str, Any], tmp_path: Path) -> None:
    head, path = _head(name, labels, options), tmp_path / "head.onnx"
    assert export.export_head(head, STAGES, path) <= 1e-4
    engine = OnnxEngine(path)
    for batch in (1, 5):  # once more from the file itself
        stages = {n: torch.randn(batch, *example.shape[1:]) for n, example in STAGES.items()}
        logits = engine.run({name: stage.numpy() for name, stage in stages.items()})["logits"]
        with torch.inference_mode():
            expected = head.eval()(Features(stages)).logits.numpy()
        assert logits.shape == (batch, labels)
        assert np.abs(logits - expected).max() <= 1e-4


def test_all_heads_are_here() -> None:
    assert {name for name, _, _ in VARIANTS} == set(HEADS.names())


def test_an_export_that_differs_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "difference", lambda *_: 0.5)
    with pytest.raises(EngineError, match=r"logits that differ by 0\.5 from torch's: the export is not kept"):
        export.export_head(_head("linear", 3, {}), STAGES, tmp_path / "head.onnx")
    assert not list(tmp_path.iterdir())
