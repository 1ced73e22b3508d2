"""What a head is told about its labels before training: text vectors, how often they come together, which are unseen."""

from __future__ import annotations

import numpy as np

from manylabel import console
from manylabel.config import TaskConfig
from manylabel.data.table import Table
from manylabel.error import ConfigError
from manylabel.head import HEADS, LabelKnowledge
from manylabel.labels import PRESENT
from manylabel.text import EMBEDDERS

CHUNK = 4096  # images at once


def label_knowledge(config: TaskConfig, table: Table, unseen: np.ndarray) -> LabelKnowledge:
    vectors = None
    if config.text.name != "none":
        embedder = EMBEDDERS.build(config.text)
        vectors = embedder.embed(table.labels.names)
        for note in embedder.notes:
            console.warn(note)
        console.say(f"text vectors: {embedder.source}, {vectors.shape[1]} numbers for each of {len(vectors)} labels")
    if unseen.any() and not (config.head.name in HEADS and HEADS.get(config.head.name).can_be_zero_shot):
        raise ConfigError(
            f"the {config.head.name} head cannot recognise labels that training never tells (zero_shot.unseen); "
            "use --recipe ml-decoder-zero-shot"
        )
    uses = [config.head.options.get(name) for name in ("query", "pooling", "grouping")]
    if vectors is not None and "text" not in uses:
        console.warn(
            f"the {config.head.name} head as it is set does not use text vectors (text.name={config.text.name})"
        )
    together = _together(table) if "cooccurrence" in uses else None
    return LabelKnowledge(vectors, together, unseen if unseen.any() else None)


def _together(table: Table) -> np.ndarray:
    """Training images that have both labels. [N, N]"""
    rows = table.rows("train")
    counts = np.zeros((len(table.labels),) * 2, np.float32)
    for start in range(0, len(rows), CHUNK):
        present = (table.matrix[rows[start : start + CHUNK]] == PRESENT).astype(np.float32)
        counts += present.T @ present
    return counts
