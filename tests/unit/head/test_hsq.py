"""HSQ's options, groups, memory, gates that are watched, and labels that find their own capacity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from manylabel.config import Part, make_config
from manylabel.core.trace import Trace
from manylabel.error import ConfigError
from manylabel.expert import ExpertUse, GateLoad
from manylabel.features import Features
from manylabel.head import HEADS, HSQ, LabelKnowledge
from manylabel.head.group_decoder import DecoderLayer as MLDecoderLayer
from manylabel.head.group_queries import GroupQueries
from manylabel.head.hybrid_sharing import HybridSharingLayer

SMALL: dict[str, Any] = {"dim": 16, "heads": 4, "hidden": 20, "layer_dims": (6, 5), "dropout": 0.0}


def build(n: int, knowledge: LabelKnowledge | None = None, **options: Any) -> HSQ:
    torch.manual_seed(0)
    more = {} if knowledge is None else {"knowledge": knowledge}
    head: HSQ = HEADS.build(Part("hsq", SMALL | options), channels={"final": 9}, num_labels=n, **more)
    return head


def features(batch: int = 4) -> Features:
    return Features({"final": torch.randn(batch, 9, 2, 3, generator=torch.Generator().manual_seed(1))})


def test_one_label_per_group_is_hsq_itself() -> None:
    plain, grouped = (
        build(7, shared_experts=3),
        build(7, shared_experts=3, groups=7, grouping="random", grouping_seed=3),
    )
    assert plain.size == grouped.size == 1
    assert torch.equal(plain.eval()(features()).logits, grouped.eval()(features()).logits)


def test_thousands_of_labels_share_a_hundred_gates() -> None:
    head = build(1000, shared_experts=2)
    assert head.size == 10
    assert head.layers[0].gate.weight.shape[0] == 100
    assert head(features()).logits.shape == (4, 1000)
    few = build(10_000, shared_experts=2, groups=100)
    experts = sum(p.numel() for layer in few.layers for p in layer.parameters())
    assert experts == sum(
        p.numel() for layer in head.layers for p in layer.parameters()
    )  # they do not grow with labels


def test_ten_thousand_labels_behind_ml_decoders_group_queries() -> None:
    config = make_config("hsq-ml-decoder").only.head
    head = HEADS.build(
        Part("hsq", {**config.options, "dim": 16, "hidden": 16}), channels={"final": 9}, num_labels=10_000
    )
    assert isinstance(head.transformer, GroupQueries)
    assert head.transformer.queries.weight.shape == (100, 16)
    assert not head.transformer.queries.weight.requires_grad  # random but fixed
    assert isinstance(head.transformer.decoder.layers[0], MLDecoderLayer)
    assert head(features(1)).logits.shape == (1, 10_000)


def test_labels_of_a_group_can_be_those_seen_together() -> None:
    together = np.eye(4) * 10
    together[0, 3] = together[3, 0] = together[1, 2] = together[2, 1] = 9
    head = build(4, LabelKnowledge(together=together), groups=2, grouping="cooccurrence")
    group = (head.slot // head.size).tolist()
    assert group[0] == group[3] != group[1] == group[2]
    again = build(4, HSQ.knowledge_of(head.state_dict(), 4), groups=2, grouping="cooccurrence")
    again.load_state_dict(head.state_dict())
    assert torch.equal(again.eval()(features()).logits, head.eval()(features()).logits)


def test_the_shared_branch_is_built_where_somebody_reads_it() -> None:
    assert not any(layer.shared_branch for layer in build(4).layers)
    live = build(4, shared_reads="shared", layer_dims=(6, 5, 4))
    assert [layer.shared_branch for layer in live.layers] == [True, True, False]  # the last one's feeds nothing
    assert not any(layer.shared_branch for layer in build(4, shared_reads="shared", shared_experts=0).layers)


def test_blocks_change_nothing_and_keep_nothing() -> None:
    torch.manual_seed(0)
    whole = HybridSharingLayer(5, 7, 6, 1, 3, shared_branch=True, block=10**9)
    blocks = HybridSharingLayer(5, 7, 6, 1, 3, shared_branch=True, block=200)
    blocks.load_state_dict(whole.state_dict())
    x = torch.randn(9, 5, 7)

    def kept(layer: HybridSharingLayer) -> tuple[int, list[torch.Tensor]]:
        sizes: dict[int, int] = {}

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            sizes[tensor.data_ptr()] = tensor.numel()
            return tensor

        given = x.clone().requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            o_t, o_s = layer(given, given)
        held = sum(sizes.values())
        (o_t.square().sum() + o_s.square().sum()).backward()
        return held, [given.grad, *(p.grad for p in layer.parameters())]

    (much, expected), (little, got) = kept(whole), kept(blocks)
    assert little < much / 2
    for a, b in zip(expected, got, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def used(head: HSQ, given: Features) -> ExpertUse | None:
    """How much the gates used each expert for these images."""
    load, trace = GateLoad(head.gates), Trace(gates=[])
    head(given, trace=trace)
    load.add(trace.gates or [])
    return load.use()


def test_a_trace_shows_the_gates_when_asked() -> None:
    head = build(5, shared_experts=3, task_experts=2).eval()
    silent = Trace(attention=[])
    head(features(), trace=silent)
    assert silent.gates is None
    found = used(head, features())
    assert found is not None
    assert found.gates.experts == ("shared 1", "shared 2", "shared 3", "own 1", "own 2")
    assert found.gates.of_label == (0, 1, 2, 3, 4)
    assert [load.shape for load in found.layers] == [(5, 5), (5, 5)]
    assert np.allclose(found.layers[0].sum(axis=1), 1)
    x = head.transformer(features())
    weights = torch.softmax(head.layers[0].gate.own(x)[:, :, 0], dim=-1).mean(dim=0).detach().numpy()
    assert np.allclose(found.layers[0][:, -2:], weights[:, :2], atol=1e-6)  # its own experts stand last
    together = ExpertUse.together([found, None, replace(found, layers=[0 * load for load in found.layers], images=12)])
    assert together is not None
    assert together.images == 16
    assert np.allclose(together.layers[0], found.layers[0] / 4)
    alone = build(5, shared_experts=0).eval()
    assert alone.gates is None
    assert used(alone, features()) is None  # one expert: no gate


def test_labels_that_stop_improving_get_more_experts() -> None:
    head = build(3, shared_experts=4, adaptive=True)
    assert head.capacity is not None
    assert head.capacity.k.tolist() == [1, 1, 1]
    head.observe(np.array([1.0, 1.0, np.nan]))
    head.observe(np.array([0.5, 1.0, np.nan]))  # the first improves, the second is stuck, the third is not known
    assert head.capacity.k.tolist() == [1, 2, 1]
    found = used(head.eval(), features())
    assert found is not None
    assert found.gates.capacity == (1, 2, 1)
    one = build(3, shared_experts=4, adaptive=True).eval()
    single = used(one, Features({"final": features().stages["final"][:1]}))
    assert single is not None
    assert ((single.layers[0][:, :4] > 0).sum(axis=1) == 1).all()
    assert (found.layers[0][:, :4] > 0).sum(axis=1)[1] >= 2


def test_a_group_adapts_to_the_mean_of_its_labels() -> None:
    head = build(4, shared_experts=4, groups=2, adaptive=True)
    head.observe(np.array([1.0, 1.0, 2.0, 2.0]))
    head.observe(np.array([0.8, 1.1, 2.5, np.nan]))
    assert head.capacity is not None
    assert head.capacity.k.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task_experts": 0, "shared_experts": 0}, "unless there are shared experts"),
        ({"shared_experts": -1}, "0 or more"),
        ({"layer_dims": ()}, "one width or more"),
        ({"layer_dims": (8, 0)}, "widths of 1 or more"),
        ({"gate_hidden": 0}, "none, or 1 or more"),
        ({"spread": 1.5}, "between 0 and 1"),
        ({"adaptive": True, "shared_experts": 1}, "2 or more with adaptive"),
        ({"adaptive": True, "task_experts": 0}, "1 or more with adaptive"),
        ({"groups": 9}, "more than the 4 labels"),
        (
            {"decoder": "ml_decoder"},
            "set head.encoder_layers=0 head.decoder_start=queries head.positions=false head.decod",
        ),
    ],
)
def test_wrong_settings_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(4, **options)
