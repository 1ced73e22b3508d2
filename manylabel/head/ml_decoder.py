"""ML-Decoder: label queries look at the image through one cross-attention; groups of labels share a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.head.base import HEADS, NOTHING, Head, LabelKnowledge
from manylabel.head.group_decoder import GroupDecoder, MLDecoderOptions
from manylabel.head.group_linear import GroupLinear
from manylabel.head.grouping import slots
from manylabel.head.text_ml_decoder import TextMLDecoder


@HEADS.register("ml_decoder")
class MLDecoder(GroupDecoder):
    """ML-Decoder: G_q → cross-attention over E → feed-forward → group FC (Eq. 3–4); zero-shot with text queries (Eq. 5–6).

    The layer of Eq. 4 is in group_decoder.py, the group FC of Eq. 3 in group_linear.py; with words (query or pooling
    "text") it is a TextMLDecoder.
    """

    recipe = "ml-decoder-laptop"
    can_be_zero_shot = True

    slot: Tensor  # [N]: place of each label among the groups

    @classmethod
    def variant(cls, options: Any) -> type[Head]:
        return TextMLDecoder if options.words else cls

    def __init__(
        self,
        options: MLDecoderOptions,
        *,
        channels: Mapping[str, int],
        num_labels: int,
        knowledge: LabelKnowledge = NOTHING,
    ) -> None:
        if knowledge.unseen is not None and knowledge.unseen.any():
            raise ConfigError(
                "labels that training never tells (zero_shot.unseen) need head.query=text and head.pooling=shared or text, "
                f"as in --recipe ml-decoder-zero-shot; this head has query={options.query} and pooling={options.pooling}"
            )
        super().__init__(options, channels=channels, num_labels=num_labels, knowledge=knowledge)
        self._say_queries(self.groups, restored=knowledge.restored)
        o, k = options, knowledge
        how = "order" if k.restored and o.grouping in ("cooccurrence", "text") else o.grouping
        slot = slots(how, num_labels, self.size, seed=o.grouping_seed, together=k.together, vectors=k.vectors)
        self.register_buffer("slot", torch.as_tensor(slot))
        self.queries = self._own_queries()
        self.pool = GroupLinear(num_labels, self.groups, self.size, o.dim, shared=o.pooling == "shared")

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        queries: Any = self.queries
        t = self.decode(queries.weight, features, trace)  # [B, K, D]
        return Output(self.pool(t, self.slot))  # [B, N]

    @property
    def query_of_label(self) -> Tensor:
        return self.slot // self.size

    @classmethod
    def knowledge_of(cls, state: Mapping[str, Tensor], num_labels: int) -> LabelKnowledge:
        if "words.vectors" not in state:
            return LabelKnowledge(restored=True)
        unseen = np.ones(num_labels, bool)
        unseen[state["words.seen"].numpy()] = False
        return LabelKnowledge(state["words.vectors"].numpy(), None, unseen if unseen.any() else None, restored=True)
