"""What features depend on, as one name: the same weights, preparation and images give the same folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import PIL
import torchvision

from manylabel.config import AugmentConfig
from manylabel.features import ENTRY
from manylabel.model import TaskModel
from manylabel.preprocess import Preprocess
from manylabel.version import VERSION

FORMAT = 4


@dataclass(frozen=True)
class View:
    """One way to vary the images: which augmentation, and the how-manieth drawing of it."""

    augment: AugmentConfig
    number: int  # 1, 2, …
    seed: int


def weights_fingerprint(model: TaskModel) -> str:
    digest = hashlib.sha256(model.backbone.name.encode())
    if getattr(model.backbone.body, "per_task", False) and len(model.backbone.sides) > 1:
        digest.update(model.name.encode())
    for name, tensor in sorted(model.backbone.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).numpy().tobytes())
    return digest.hexdigest()


def cache_key(
    weights: str, images: Sequence[bytes], preprocess: Preprocess, dtype: str, view: View | None = None
) -> str:
    """`weights` is their fingerprint, `images` are digests of what is in each. Where the images are and what they are
    called is no part of it, nor which stages are kept: each is a file of its own."""
    code = [VERSION, PIL.__version__]  # who decodes and draws
    what: dict[str, object] = {
        "format": FORMAT,
        "weights": weights,
        "preprocess": asdict(preprocess),
        "dtype": dtype,
        "code": code,
    }
    if view is not None:
        what["view"] = asdict(view)
        code.append(torchvision.__version__)  # who augments
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode())
    for content in images:
        digest.update(content)
    return digest.hexdigest()[:32]


def file_names(model: TaskModel) -> dict[str, str]:
    """Name of a stage in Features → name of its files: the same stage pooled, or entered elsewhere, is another one."""
    names = {name: f"{name}-mean" if name in model.pooled else name for name in model.feature_names}
    return names if model.backbone.cut is None else {**names, ENTRY: f"{ENTRY}-{model.backbone.cut}"}
