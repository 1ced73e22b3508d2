"""What every head must hold, over the registry."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from manylabel.config import make_config
from manylabel.core.trace import Trace
from manylabel.features import Features
from manylabel.head import HEADS, Head
from manylabel.head.attention import Attention

CHANNELS = {"stage1": 16, "stage2": 24, "stage3": 32, "stage4": 40, "final": 48}
SIZES = {"stage1": 16, "stage2": 8, "stage3": 8, "stage4": 4, "final": 4}


def _features(batch: int, seed: int = 0) -> Features:
    generator = torch.Generator().manual_seed(seed)
    return Features({n: torch.randn(batch, c, SIZES[n], SIZES[n], generator=generator) for n, c in CHANNELS.items()})


# Forms of a head that are made of other parts
VARIANTS = {"hsq behind ml_decoder": make_config("hsq-ml-decoder").only.head}


def _head(name: str, num_labels: int) -> Head:
    torch.manual_seed(0)
    head: Head = HEADS.build(VARIANTS.get(name, name), channels=CHANNELS, num_labels=num_labels)
    return head


@pytest.mark.parametrize("name", [*HEADS.names(), *VARIANTS])
@pytest.mark.parametrize("num_labels", [1, 2, 80, 1000])
class TestHead:
    def test_gives_one_logit_per_label(self, name: str, num_labels: int) -> None:
        head = _head(name, num_labels)
        assert head.num_labels == num_labels
        assert set(head.stages) <= set(CHANNELS)
        assert head(_features(3)).logits.shape == (3, num_labels)

    def test_every_trained_parameter_gets_a_gradient(self, name: str, num_labels: int) -> None:
        head = _head(name, num_labels).train()
        head(_features(4)).logits.square().sum().backward()
        without = [n for n, p in head.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
        assert not without

    def test_an_image_does_not_depend_on_its_batch(self, name: str, num_labels: int) -> None:
        head, features = _head(name, num_labels).eval(), _features(5)
        alone = Features({n: s[2:3] for n, s in features.stages.items()})
        assert torch.allclose(head(features).logits[2:3], head(alone).logits, atol=1e-5)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_finite_in_half_precision(self, name: str, num_labels: int, dtype: torch.dtype) -> None:
        head = _head(name, num_labels).eval().to(dtype)
        logits = head(Features({n: s.to(dtype) for n, s in _features(2).stages.items()})).logits
        assert torch.isfinite(logits).all()

    def test_safetensors_round_trip(self, name: str, num_labels: int, tmp_path: Path) -> None:
        head, other = _head(name, num_labels).eval(), _head(name, num_labels).eval()
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.add_(1)
        save_file(head.state_dict(), tmp_path / "head.safetensors")
        other.load_state_dict(load_file(tmp_path / "head.safetensors"))
        assert torch.equal(head(_features(2)).logits, other(_features(2)).logits)

    def test_looks_where_its_queries_look(self, name: str, num_labels: int) -> None:
        """In forward() the last attention gets queries and keys; the look is the softmax of their products, in loops."""
        head, features = _head(name, num_labels).eval(), _features(2)
        query, trace = head.query_of_label, Trace(attention=[])
        inputs: list[tuple[torch.Tensor, ...]] = []
        modules = [m for m in head.modules() if isinstance(m, Attention)]
        hooks = [m.register_forward_pre_hook(lambda _, given: inputs.append(given)) for m in modules]
        with torch.no_grad():
            head(features, trace=trace)
        for hook in hooks:
            hook.remove()
        assert (query is None) == (not trace.attention)
        if not trace.attention or query is None:
            pytest.skip("has no queries")
        (look,) = trace.attention
        assert query.shape == (num_labels,)
        assert query.max() + 1 == look.weights.shape[2]
        assert look.grids == {"final": (4, 4)}
        queries, keys, _ = inputs[-1]
        last = modules[-1]
        q, k = last.query(queries).expand(2, -1, -1), last.key(keys)
        size = q.shape[-1] // last.heads
        for h in range(last.heads):
            of = slice(h * size, (h + 1) * size)
            for row in {0, q.shape[1] - 1}:
                products = [(q[1, row, of] * k[1, t, of]).sum() / size**0.5 for t in range(k.shape[1])]
                expected = torch.softmax(torch.stack(products), dim=0)
                assert torch.allclose(look.weights[1, h, row], expected, atol=1e-5)

    def test_pooled_heads_need_only_means(self, name: str, num_labels: int) -> None:
        head, features = _head(name, num_labels).eval(), _features(3)
        if not head.pooled:
            pytest.skip("looks at places, not only at means")
        means = Features({n: s.mean(dim=(2, 3), keepdim=True) for n, s in features.stages.items()})
        assert torch.allclose(head(features).logits, head(means).logits, atol=1e-6)
