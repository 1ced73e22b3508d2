"""What `bench heads` measures: the loop is the batched product, and both sides have the same batch."""

from __future__ import annotations

import pytest
import torch

from benchmarks import heads
from benchmarks.cost import DECODER
from benchmarks.heads import _growth, _Loop, _three, _throughput, group_fc_memory
from manylabel.head.group_linear import GroupLinear


def test_the_loop_is_the_batched_product() -> None:
    torch.manual_seed(0)
    ours, loop = GroupLinear(11, 4, 3, 8), _Loop(11, 4, 3, 8)
    loop.load_state_dict(ours.state_dict())
    queries, slot = torch.randn(2, 4, 8), torch.arange(11)
    torch.testing.assert_close(loop(queries, slot), ours(queries, slot))


def test_both_sides_have_the_same_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head's growth with labels was once compared at other batches, which flattered ours."""
    batches: list[int] = []
    step = heads._step

    def noted(head: object, inputs: object, mode: str) -> object:
        batches.append(len(inputs.final))  # type: ignore[attr-defined]
        return step(head, inputs, mode)  # type: ignore[arg-type]

    monkeypatch.setattr(heads, "_step", noted)
    monkeypatch.setattr(heads, "PAPER", {"dim": 16, "heads": 2, "hidden": 16})
    monkeypatch.setattr(heads, "decoder_options", lambda n: {**heads.PAPER, "groups": n, "self_attention": True})
    images = torch.randn(2, heads.CHANNELS, heads.GRID, heads.GRID)
    grown = _growth(images, 1, 1100)
    assert set(batches) == {2}
    assert [row.name for row in grown] == ["growth with labels, eval", "growth with labels, train"]
    assert all("batch 2 of both" in row.case and row.peer_name == DECODER for row in grown)
    rows = _throughput(30, images, 1)
    assert {row.peer_name for row in rows} == {"average pooling", DECODER}
    for row in rows:
        assert row.ratio == pytest.approx(row.ours / row.peer)
    assert {row.unit for row in rows} == {"images/s", "images"}


def test_the_largest_batch_is_counted_by_what_backward_passes_need() -> None:
    """Average pooling keeps a mean of its features [B, C] (4 C bytes an image) and the logits that the loss squares."""
    head = heads._head("linear", {}, 10)
    per_image = 4 * (heads.CHANNELS + 10)
    fixed = heads.WEIGHTS * 4 * (heads.CHANNELS * 10 + 10)
    assert heads.largest_batch(head) == int((heads.MEMORY - fixed) // per_image)
    few, many = (heads._head(*_three(labels)[DECODER], labels) for labels in (100, 400))
    assert heads.largest_batch(few) > 2 * heads.largest_batch(many)


def test_memory_of_the_group_fc_is_told_beside_the_loop() -> None:
    for row in group_fc_memory(300, 10, 8):
        assert "300 labels, K = 10, batch 8" in row.case
        assert row.ours > 0
        assert row.peer_name == "the loop of appendix K"


def test_the_baseline_is_the_transformer_decoder_of_the_paper() -> None:
    name, options = _three(5000)[DECODER]
    assert (name, options["groups"], options["query"], options["self_attention"]) == (
        "ml_decoder",
        5000,
        "learnable",
        True,
    )
