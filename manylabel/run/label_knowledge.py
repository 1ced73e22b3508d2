"""What a head is told about its labels before training: text vectors, how often they come together, which are unseen."""

from __future__ import annotations

import numpy as np

from manylabel import console
from manylabel.config import Config
from manylabel.data.table import Table
from manylabel.error import ConfigError
from manylabel.head import HEADS, LabelKnowledge
from manylabel.labels import PRESENT
from manylabel.text import EMBEDDERS


def label_knowledge(config: Config, table: Table, unseen: np.ndarray) -> LabelKnowledge:
    vectors = None
    if config.text.name != "none":
        embedder = EMBEDDERS.build(config.text)
        vectors = embedder.embed(table.labels.names)
        for note in embedder.notes:
            console.warn(note)
        console.say(f"text vectors: {embedder.source}, {vectors.shape[1]} numbers for each of {len(vectors)} labels")
    if unseen.any() and not HEADS.get(config.head.name).can_be_zero_shot:
        raise ConfigError(
            f"the {config.head.name} head cannot recognise labels that training never tells (zero_shot.unseen); "
            "use --recipe ml-decoder-zero-shot"
        )
    present = (table.matrix[table.rows("train")] == PRESENT).astype(np.float32)
    together = present.T @ present if config.head.options.get("grouping") == "cooccurrence" else None
    return LabelKnowledge(vectors, together, unseen if unseen.any() else None)
