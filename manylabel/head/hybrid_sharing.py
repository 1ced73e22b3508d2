"""The Hybrid Sharing Layer of HSQ (Algorithm 1, Eq. 1–2): task-specialised and shared experts, mixed by gates.

B images, L labels (or groups of labels), n_t experts for each label, n_s shared ones, d_i → d_o. Nothing loops over labels
or experts: experts of one kind are one batched product, and Σ_k of Eq. 1–2 is another. The outputs of the two kinds are
never concatenated, and where those of a whole batch would be large, images are taken block by block and a block's expert
outputs are computed again for the backward pass instead of being kept (`in_blocks`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from manylabel.core.trace import Trace
from manylabel.expert import ExpertBank, start_alike

BLOCK = 8_000_000  # numbers of expert outputs at a time: 32 MB
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": nn.functional.gelu,
    "tanh": torch.tanh,
    "none": lambda y: y,
}
Reads = Literal["own", "shared"]


class HybridSharingLayer(nn.Module):
    """X_t [B, L, d_i], X_s [B, L, d_i] → O_t [B, L, d_o], O_s like X_s, or None without that branch.

    (X_s [B, 1, d_i], one vector for all labels, is ours: in Algorithm 1 its shape is that of X_t.)

    O_{t_i} = Σ_k Softmax(X_{t_i} G_{t_i})^(k) ⊙ σ(Y_{t_i})^(k)     over the n_t experts of label i and the n_s shared ones
    O_s     = Σ_k Softmax(X_s G_s)^(k) ⊙ σ(Y_s)^(k)                 over all n_s + L·n_t experts

    `reads` says what the shared experts see in a label's sum: its own X_{t_i}, as Algorithm 1 has it, or X_s, as in PLE.
    """

    def __init__(
        self,
        labels: int,
        d_in: int,
        d_out: int,
        task_experts: int,
        shared_experts: int,
        *,
        shared_branch: bool,
        reads: Reads = "own",
        activation: str = "relu",
        expert_hidden: int | None = None,
        gate_hidden: int | None = None,
        spread: float = 1.0,
        block: int = BLOCK,
    ) -> None:
        super().__init__()
        self.n_t, self.n_s, self.d_out = task_experts, shared_experts, d_out
        self.reads, self.block, self.widest = reads, block, max(d_out, expert_hidden or 0)
        self.sigma = ACTIVATIONS[activation]
        self.task = ExpertBank(labels, task_experts, d_in, d_out, expert_hidden) if task_experts else None  # E_t
        self.shared = ExpertBank(1, shared_experts, d_in, d_out, expert_hidden) if shared_experts else None  # E_s
        start_alike([bank for bank in (self.shared, self.task) if bank is not None], spread)
        one = task_experts + shared_experts == 1  # a softmax over one is 1: nothing to learn
        self.gate = None if one else ExpertBank(labels, 1, d_in, task_experts + shared_experts, gate_hidden)  # G_t
        every = shared_experts + labels * task_experts
        self.shared_gate = ExpertBank(1, 1, d_in, every, gate_hidden) if shared_branch and every > 1 else None  # G_s
        self.shared_branch = shared_branch

    def forward(
        self, x_t: Tensor, x_s: Tensor, allowed: Tensor | None = None, trace: Trace | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """`allowed` [L]: how many shared experts, those it likes most, each label may use; None = all."""
        a_t = self._task_weights(x_t, allowed)  # [B, L, n_t + n_s]
        if trace is not None and trace.gates is not None and self.gate is not None:
            trace.gates.append(a_t.roll(-self.n_t, dims=-1))  # the shared experts first
        numbers = x_t.shape[1] * (self.n_t + self.n_s) * self.widest
        o_t = in_blocks(self._task_output, (x_t, x_s, a_t), numbers, self.block)
        if not self.shared_branch:
            return o_t, None
        a_s = self._shared_weights(x_s)  # [B, P, n_s + L·n_t]
        numbers = x_s.shape[1] * a_s.shape[-1] * self.widest
        return o_t, in_blocks(self._shared_output, (x_s, a_s), numbers, self.block)

    # --- gates ------------------------------------------------------------------------------------------------------

    def _task_weights(self, x_t: Tensor, allowed: Tensor | None) -> Tensor:
        """A_t = Softmax(X_t G_t): the label's own experts first, then the shared ones. [B, L, n_t + n_s]"""
        if self.gate is None:
            return x_t.new_ones(*x_t.shape[:2], 1)
        logits = self.gate.own(x_t).flatten(2)
        if allowed is not None and self.n_s > 1:
            own, shared = logits[..., : self.n_t], logits[..., self.n_t :]
            rank = shared.argsort(dim=-1, descending=True).argsort(dim=-1)  # 0 = the one it likes most
            logits = torch.cat([own, shared.masked_fill(rank >= allowed[:, None], -torch.inf)], dim=-1)
        return torch.softmax(logits, dim=-1)

    def _shared_weights(self, x_s: Tensor) -> Tensor:
        """A_s = Softmax(X_s G_s): the shared experts first, then label by label. [B, P, n_s + L·n_t]"""
        if self.shared_gate is None:
            return x_s.new_ones(*x_s.shape[:2], 1)
        weights: Tensor = torch.softmax(self.shared_gate.every(x_s.flatten(0, 1))[:, 0], dim=-1).unflatten(
            0, x_s.shape[:2]
        )
        return weights

    # --- sums over experts (Eq. 1 and 2) ------------------------------------------------------------------------------

    def _task_output(self, x_t: Tensor, x_s: Tensor, a: Tensor) -> Tensor:
        """O_t = Σ_k A_t^(k) ⊙ σ(Y_t)^(k) [B, L, d_o]"""
        out = None
        if self.task is not None:
            out = mixed(a[..., : self.n_t], self.sigma(self.task.own(x_t)))
        if self.shared is not None:
            seen = x_t if self.reads == "own" else x_s
            y = self.sigma(self.shared.every(seen.flatten(0, 1))).unflatten(0, seen.shape[:2])  # [B, P, n_s, d_o]
            part = mixed(a[..., self.n_t :], y)
            out = part if out is None else out + part
        assert out is not None
        return out

    def _shared_output(self, x_s: Tensor, a: Tensor) -> Tensor:
        """O_s = Σ_k A_s^(k) ⊙ σ(Y_s)^(k) [B, P, d_o]"""
        rows, weights = x_s.flatten(0, 1), a.flatten(0, 1)[:, None]  # [R, d_i], [R, 1, n_s + L·n_t]
        out = None
        for bank, part in ((self.shared, weights[..., : self.n_s]), (self.task, weights[..., self.n_s :])):
            if bank is not None:
                y = part @ self.sigma(bank.every(rows))  # [R, 1, d_o]
                out = y if out is None else out + y
        assert out is not None
        x_t: Tensor = out[:, 0].unflatten(0, x_s.shape[:2])
        return x_t


def mixed(a: Tensor, y: Tensor) -> Tensor:
    """Σ_k a_k y_k: a [B, L, k], y [B, L, k, d] or [B, 1, k, d] (the same for every label) → [B, L, d]"""
    if y.shape[1] == 1:
        return a @ y[:, 0]
    return (a[:, :, None] @ y)[:, :, 0]


def in_blocks(f: Callable[..., Tensor], inputs: tuple[Tensor, ...], numbers: int, block: int) -> Tensor:
    """f(*inputs), in blocks of images so that at most `block` numbers of expert outputs exist at a time.

    `numbers` of them belong to one image. A block's are not kept for the backward pass, they are computed again.
    """
    if torch.compiler.is_compiling():  # an export must not fix the number of images
        return f(*inputs)
    images = max(1, block // max(numbers, 1))
    if inputs[0].shape[0] <= images:
        return f(*inputs)
    parts = zip(*(x.split(images) for x in inputs), strict=True)
    if not torch.is_grad_enabled():
        return torch.cat([f(*part) for part in parts])
    kept = (checkpoint(f, *part, use_reentrant=False, preserve_rng_state=False) for part in parts)
    return torch.cat(list(kept))
