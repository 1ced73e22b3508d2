"""Beginning with the weights of a plain vision transformer: everything shared is copied, its MLPs into all experts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import timm
import torch
from timm.layers import Mlp, resample_abs_pos_embed
from torch import Tensor, nn

from manylabel.backbone.moe_vit import SPREAD, MoeViT
from manylabel.error import ConfigError, WeightsError
from manylabel.storage.tensor_file import read_tensors


@torch.no_grad()
def begin_with(vit: MoeViT, weights: str) -> tuple[Sequence[float], Sequence[float]] | None:
    """`weights`: a .safetensors file in timm's naming of a ViT, or the name of a pre-trained timm ViT.

    Returns mean and standard deviation of the pixels that it was trained with, where they are known.
    """
    state, pixels = _read(weights)
    _check(vit, state, weights)
    blocks: list[Any] = list(vit.blocks)
    for number, block in enumerate(blocks):
        own = {n.removeprefix(f"blocks.{number}."): t for n, t in state.items() if n.startswith(f"blocks.{number}.")}
        _copy(block, {n: t for n, t in own.items() if not n.startswith("mlp.")}, weights)
        mlp = Mlp(vit.size.width, vit.size.hidden)
        _copy(mlp, {n.removeprefix("mlp."): t for n, t in own.items() if n.startswith("mlp.")}, weights)
        if number in vit.sparse:
            block.mlp.experts.copy_mlp(mlp.fc1, mlp.fc2, noise=SPREAD)
        else:
            block.mlp.load_state_dict(mlp.state_dict())
    _copy(vit.norm, {n.removeprefix("norm."): t for n, t in state.items() if n.startswith("norm.")}, weights)
    embeddings: list[Any] = list(vit.embed.values())
    for embed in embeddings:
        bias = state.get("patch_embed.proj.bias", torch.zeros(vit.size.width))  # CLIP's has none
        _copy(embed.patches, {"weight": state["patch_embed.proj.weight"], "bias": bias}, weights)
        position = state["pos_embed"].reshape(1, -1, vit.size.width)
        side = int(position.shape[1] ** 0.5)
        position = position[:, position.shape[1] - side * side :]  # without class and register tokens
        embed.position.copy_(resample_abs_pos_embed(position, list(embed.grid), [side, side], num_prefix_tokens=0))
    return pixels


def _read(weights: str) -> tuple[dict[str, Tensor], tuple[Sequence[float], Sequence[float]] | None]:
    if weights.endswith(".safetensors"):
        return read_tensors(Path(weights), WeightsError).tensors, None
    try:
        model: Any = timm.create_model(weights, pretrained=True)
    except Exception as error:  # timm raises whatever the hub's client raises
        brief = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise WeightsError(
            f"backbone.weights: {weights} could not be loaded ({brief}); give a .safetensors file of a ViT instead"
        ) from error
    return dict(model.state_dict()), (model.pretrained_cfg["mean"], model.pretrained_cfg["std"])


def _check(vit: MoeViT, state: dict[str, Tensor], weights: str) -> None:
    wanted = {"patch_embed.proj.weight", "pos_embed", "norm.weight", f"blocks.{vit.size.layers - 1}.mlp.fc1.weight"}
    missing = sorted(wanted - set(state))
    if "norm_pre.weight" in state:
        raise ConfigError(
            f"backbone.weights: {weights} normalises its tokens before the first layer (norm_pre), which this transformer "
            "does not; choose another, or set backbone.weights=none"
        )
    if missing:
        raise ConfigError(
            f"backbone.weights: {weights} is no plain ViT of {vit.size.layers} layers or more (it has no {missing[0]}); "
            "choose another, or set backbone.weights=none"
        )


def _copy(module: nn.Module, state: dict[str, Tensor], weights: str) -> None:
    """Copies what the module has; layers that only the weights have (layer scale, say) cannot be left out."""
    expected = {name: tensor for name, tensor in module.state_dict().items() if name in state}
    for name, tensor in state.items():
        if name not in expected or expected[name].shape != tensor.shape:
            shape = tuple(expected[name].shape) if name in expected else "nothing"
            raise ConfigError(
                f"backbone.weights: {name} of {weights} has the shape {tuple(tensor.shape)}, where this transformer has "
                f"{shape}; set width, heads, hidden and patch in backbone.options to those of the weights"
            )
    module.load_state_dict({**module.state_dict(), **state})
