"""CK4 for models with more state: views, words, random queries, trained layers, averaged weights end in the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_resume import check_stopped_and_resumed

WORDS = "red 1 0 0 1\ngreen 0 1 0 1\nblue 0 0 1 1\nwhite 1 1 1 1\n"
LOOP = [
    "train.epochs=2",
    "train.batch_size=8",
    "data.validation_share=0.17",
    "data.workers=0",
    "train.views=1",
    "augment.flip=true",
]
HEADS = {
    "groups": ["head.name=ml_decoder", "head.groups=2", "head.grouping=cooccurrence", "head.token_dropout=0.3"],
    "words": [
        "head.name=ml_decoder",
        "head.query=text",
        "head.pooling=shared",
        "head.query_noise=0.2",
        "text.name=file",
    ],
    "query2label": ["head.name=query2label", "head.dim=32"],
    "partial": [
        "backbone.freeze=partial",
        "augment.mixup=0.3",
        "head.attention=0.5",
        "train.amp=bf16",
        "train.ema=0.9",
    ],
    "head first": ["backbone.freeze=partial", "train.head_first=1", "head.name=ml_decoder"],
    "rm": ["neck.name=rm", "neck.stages=stage2,stage3", "neck.summary=attention", "neck.start=0.1", "neck.share=label"],
    "hsq": ["head.name=hsq", "head.dim=32", "head.shared_experts=4", "head.adaptive=true", "head.layer_dims=8,4"],
}


@pytest.mark.parametrize("head", HEADS)
def test_stopped_runs_end_bit_for_bit_the_same(
    photos: Path, tmp_path: Path, tiny_settings: list[str], monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    (tmp_path / "words.txt").write_text(WORDS, encoding="utf-8")
    settings = [*tiny_settings, *LOOP, *HEADS[head]]
    if head == "words":
        settings += [f"text.path={tmp_path / 'words.txt'}", "head.random_queries=2", "zero_shot.unseen=white"]
        settings += ["zero_shot.in_training=hide"]
    check_stopped_and_resumed(photos, tmp_path, settings, monkeypatch, (4, 6))
