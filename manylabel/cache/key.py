"""What features depend on, as one name: the same weights, preparation and images give the same folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import PIL
import torchvision

from manylabel.config import AugmentConfig
from manylabel.data.table import Table
from manylabel.features import ENTRY
from manylabel.model import Model
from manylabel.preprocess import Preprocess
from manylabel.version import VERSION

FORMAT = 3


@dataclass(frozen=True)
class View:
    """One way to vary the images: which augmentation, and the how-manieth drawing of it."""

    augment: AugmentConfig
    number: int  # 1, 2, …
    seed: int


def weights_fingerprint(model: Model) -> str:
    digest = hashlib.sha256(model.backbone.name.encode())
    for name, tensor in sorted(model.backbone.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).numpy().tobytes())
    return digest.hexdigest()


def cache_key(weights: str, table: Table, preprocess: Preprocess, dtype: str, view: View | None = None) -> str:
    """`weights` is their fingerprint. Which stages are kept is no part of it: each is a file of its own."""
    what: dict[str, Any] = {
        "format": FORMAT,
        "weights": weights,
        "preprocess": asdict(preprocess),
        "dtype": dtype,
        "code": [VERSION, PIL.__version__],  # who decodes and draws
    }
    if view is not None:
        what["view"] = asdict(view)
        what["code"].append(torchvision.__version__)  # who augments
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode())
    for key in table.keys:
        digest.update(table.source.stamp(str(key)).encode() + b"\0")
    return digest.hexdigest()[:32]


def file_names(model: Model) -> dict[str, str]:
    """Name of a stage in Features → name of its files: the same stage pooled, or entered elsewhere, is another one."""
    names = {name: f"{name}-mean" if name in model.pooled else name for name in model.feature_names}
    return names if model.backbone.cut is None else {**names, ENTRY: f"{ENTRY}-{model.backbone.cut}"}
