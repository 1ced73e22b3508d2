"""HSQ: label queries, then Hybrid Sharing Layers, then a classifier for each label; groups of labels for thousands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from manylabel.config import option
from manylabel.core.output import Output
from manylabel.core.trace import Trace
from manylabel.expert import AdaptiveSelection, ExpertBank, Gates, expert_similarity
from manylabel.features import Features
from manylabel.head.base import HEADS, NOTHING, Head, LabelKnowledge
from manylabel.head.group_queries import GroupQueries, check_queries_only
from manylabel.head.grouping import GroupOptions, group_size, slots
from manylabel.head.hybrid_sharing import ACTIVATIONS, HybridSharingLayer
from manylabel.head.prior import Prior
from manylabel.head.query2label import QueryOptions, QueryTransformer
from manylabel.require import require


@dataclass(frozen=True)
class SharingOptions(GroupOptions, QueryOptions):
    """Settings of HSQ and of its linear variant."""

    decoder: Literal["query2label", "ml_decoder"] = option(
        "query2label", "what makes a vector for each label: Query2Label's transformer, or ML-Decoder's decoder"
    )
    layer_dims: tuple[int, ...] = option((64, 16), "width d_o of each layer behind the transformer")
    activation: Literal["relu", "gelu", "tanh", "none"] = option("relu", "σ of the experts")
    spread: float = option(0.1, "how far experts start from one another: 0 = all the same, 1 = independent")
    layer_dropout: float = option(0.0, "dropout behind each of these layers")
    classifier_hidden: int | None = option(None, "classifiers are MLPs with so many hidden units; none = linear")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(len(self.layer_dims) > 0, "head.layer_dims", self.layer_dims, "one width or more, e.g. 64,16")
        require(all(d >= 1 for d in self.layer_dims), "head.layer_dims", self.layer_dims, "widths of 1 or more")
        require(self.activation in ACTIVATIONS, "head.activation", self.activation, "one of " + ", ".join(ACTIVATIONS))
        require(0 <= self.spread <= 1, "head.spread", self.spread, "between 0 and 1")
        require(0 <= self.layer_dropout < 1, "head.layer_dropout", self.layer_dropout, "at least 0 and below 1")
        hidden = self.classifier_hidden
        require(hidden is None or hidden >= 1, "head.classifier_hidden", hidden, "none, or 1 or more")
        if self.decoder == "ml_decoder":
            check_queries_only(self)


@HEADS.register("hsq")
class HSQ(Head):
    """HSQ: query transformer → Hybrid Sharing Layers (Algorithm 1) → a classifier for each label.

    The transformer is Query2Label's, as published, or ML-Decoder's decoder, for section 1 says any.
    N labels in K groups of g = ⌈N/K⌉ (as in group decoding); a group has one query, one set of experts and one gate, and
    its classifier gives the logits of its labels. With g = 1, the default up to 100 labels, this is HSQ as published.
    """

    recipe = "hsq-laptop"

    @dataclass(frozen=True)
    class Options(SharingOptions):
        task_experts: int = option(1, "experts n_t of each label")
        shared_experts: int = option(16, "experts n_s that all labels share")
        expert_hidden: int | None = option(None, "experts are MLPs with so many hidden units; none = linear")
        gate_hidden: int | None = option(None, "gates are MLPs with so many hidden units; none = linear")
        shared_reads: Literal["own", "shared"] = option(
            "own",
            "what shared experts see for a label: its own vector (Algorithm 1), or the shared branch's (as in PLE)",
        )
        shared_input: Literal["per_label", "pooled"] = option(
            "per_label", "with shared_reads=shared: a shared vector X_s for each label, as X_t; or one for all (ours)"
        )
        adaptive: bool = option(False, "each label finds in training how many shared experts its gate may use")
        adaptive_patience: int = option(1, "with adaptive: epochs without a lower held-out loss before it grows")

        def __post_init__(self) -> None:
            super().__post_init__()
            for name in ("task_experts", "shared_experts"):
                require(getattr(self, name) >= 0, f"head.{name}", getattr(self, name), "0 or more")
            require(
                self.task_experts + self.shared_experts >= 1,
                "head.task_experts",
                self.task_experts,
                "1 or more, unless there are shared experts",
            )
            for name in ("expert_hidden", "gate_hidden"):
                value = getattr(self, name)
                require(value is None or value >= 1, f"head.{name}", value, "none, or 1 or more")
            require(self.adaptive_patience >= 1, "head.adaptive_patience", self.adaptive_patience, "1 or more")
            if self.adaptive:
                require(self.shared_experts >= 2, "head.shared_experts", self.shared_experts, "2 or more with adaptive")
                require(self.task_experts >= 1, "head.task_experts", self.task_experts, "1 or more with adaptive")

    options: Options
    slot: Tensor  # [N]: place of each label among the groups

    def __init__(
        self, options: Options, *, channels: Mapping[str, int], num_labels: int, knowledge: LabelKnowledge = NOTHING
    ) -> None:
        super().__init__(options, channels=channels, num_labels=num_labels, knowledge=knowledge)
        o = options
        self.size = o.labels_per_query(num_labels)  # g
        groups = group_size(num_labels, self.size)
        self.register_buffer("slot", torch.as_tensor(slots_of(o, num_labels, self.size, knowledge)))
        self.transformer = (GroupQueries if o.decoder == "ml_decoder" else QueryTransformer)(o, channels, groups)
        self.stages = self.transformer.stages
        self.layers = nn.ModuleList()
        widths = (o.dim, *o.layer_dims)
        for i, (d_in, d_out) in enumerate(zip(widths, o.layer_dims, strict=False)):
            read = o.shared_reads == "shared" and o.shared_experts > 0 and i + 1 < len(o.layer_dims)
            self.layers.append(
                HybridSharingLayer(
                    groups,
                    d_in,
                    d_out,
                    o.task_experts,
                    o.shared_experts,
                    shared_branch=read,  # O_s of a layer that no other reads would be computed for nothing
                    reads=o.shared_reads,
                    activation=o.activation,
                    expert_hidden=o.expert_hidden,
                    gate_hidden=o.gate_hidden,
                    spread=o.spread,
                )
            )
        self.dropout = nn.Dropout(o.layer_dropout)
        self.classifier = ExpertBank(groups, 1, widths[-1], self.size, o.classifier_hidden, bias=True)
        self.capacity = None
        self.adapts = o.adaptive
        if o.adaptive:
            self.capacity = AdaptiveSelection(groups, o.shared_experts, o.adaptive_patience)

    def forward(self, features: Features, targets: Any = None, trace: Trace | None = None) -> Output:
        x_t = self.transformer(features, trace)  # [B, K, D]
        x_s: Tensor | None = x_t  # the first layer's branches have one input
        if self.options.shared_reads == "shared" and self.options.shared_input == "pooled":
            x_s = x_t.mean(dim=1, keepdim=True)  # [B, 1, D]
        allowed = None if self.capacity is None else self.capacity.k
        for layer in self.layers:
            x_t, x_s = layer(x_t, x_t if x_s is None else x_s, allowed, trace)
            x_t, x_s = self.dropout(x_t), None if x_s is None else self.dropout(x_s)
        logits = self.classifier.own(x_t).flatten(1)  # [B, K·g]
        return Output(logits.index_select(1, self.slot))  # [B, N]

    @torch.no_grad()
    def expect(self, prior: Prior) -> None:
        last = self.classifier.bias if self.classifier.hidden is None else self.classifier.bias2
        assert last is not None
        last.view(-1)[self.slot] = prior.labels

    # --- what it does, and how much of it it needs ------------------------------------------------------------------------

    @property
    def query_of_label(self) -> Tensor:
        return self.slot // self.size

    @property
    def gates(self) -> Gates | None:
        if all(layer.gate is None for layer in self.layers if isinstance(layer, HybridSharingLayer)):
            return None
        shared, own = range(1, self.options.shared_experts + 1), range(1, self.options.task_experts + 1)
        return Gates(
            (*(f"shared {j}" for j in shared), *(f"own {j}" for j in own)),
            tuple(self.query_of_label.tolist()),
            None if self.capacity is None else tuple(self.capacity.k.tolist()),
        )

    def expert_similarity(self) -> tuple[float, ...]:
        layers: list[Any] = list(self.layers)
        return tuple(expert_similarity(layer.shared, layer.task) for layer in layers if layer.gate is not None)

    def observe(self, losses: np.ndarray) -> None:
        """Algorithm 1 of AdaMV-MoE, with the labels of one gate for a task: its loss is the mean of theirs."""
        if self.capacity is not None:
            of_gate = mean_by(self.query_of_label.numpy(force=True), losses, len(self.capacity.k))
            self.capacity.update(torch.from_numpy(of_gate))


def mean_by(group: np.ndarray, values: np.ndarray, groups: int) -> np.ndarray:
    """Mean of the values in each group; NaN where none is a number. [N], [N] → [groups]"""
    measured = ~np.isnan(values)
    count = np.bincount(group, measured, minlength=groups)
    total = np.bincount(group, np.where(measured, values, 0.0), minlength=groups)
    means: np.ndarray = np.divide(total, count, out=np.full(groups, np.nan), where=count > 0)
    return means


@HEADS.register("hsq_linear")
class HSQLinear(HSQ):
    """HSQ-Linear of the paper's ablation: the Hybrid Sharing Layers replaced by σ(x W), the same W for all labels."""

    recipe = "hsq-linear-laptop"

    @dataclass(frozen=True)
    class Options(SharingOptions):
        # one shared expert and none of the labels' own: a gate over one is 1, and what is left is σ(x W)
        task_experts = 0
        shared_experts = 1
        expert_hidden = gate_hidden = None
        shared_reads = "own"
        adaptive = False


def slots_of(o: GroupOptions, num_labels: int, size: int, knowledge: LabelKnowledge) -> np.ndarray:
    how = "order" if knowledge.restored and o.grouping in ("cooccurrence", "text") else o.grouping
    return slots(how, num_labels, size, seed=o.grouping_seed, together=knowledge.together, vectors=knowledge.vectors)
