"""What backbone, neck and head must give, looked at with one blank image before anything is trained."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from manylabel.backbone import Backbone
from manylabel.core.output import Output
from manylabel.error import ConfigError
from manylabel.features import Features
from manylabel.neck import Neck


def check_features(features: Any, backbone: Backbone) -> None:
    """A backbone gives maps with as many channels as it says."""
    for name, stage in features.stages.items():
        told = backbone.channels.get(name)
        if told is not None and stage.shape[1] != told:
            raise ConfigError(
                f"backbone {backbone.name} says that {name} has {told} channels, and gives {list(stage.shape)}; correct "
                "num_features or feature_info (manylabel/backbone/body.py)"
            )


def check_parts(parts: Any, neck: Neck, labels: int) -> None:
    """A neck gives weighted features."""
    name = type(neck).__name__
    if not hasattr(neck, "channels"):
        raise ConfigError(f"neck {name} has no channels; it must say how many each stage that it gives has")
    fine = isinstance(parts, list) and len(parts) > 0 and all(isinstance(p, tuple) and len(p) == 2 for p in parts)
    if not fine or not all(isinstance(features, Features) for _, features in parts):
        raise ConfigError(f"neck {name} gives {_named(parts)}; forward must give a list of (weight or None, Features)")
    for weight, features in parts:
        if weight is not None and (not isinstance(weight, Tensor) or weight.shape not in ((1, 1), (1, labels))):
            shape = list(weight.shape) if isinstance(weight, Tensor) else _named(weight)
            raise ConfigError(
                f"neck {name} weighs features by {shape} for 1 image and {labels} labels, not [1, {labels}]"
            )
        for stage, values in features.stages.items():
            told = neck.channels.get(stage)
            if told is not None and values.shape[1] != told:
                raise ConfigError(f"neck {name} says that {stage} has {told} channels, and gives {list(values.shape)}")


def check_output(output: Any, head: str, labels: int) -> None:
    """A head gives an Output with a logit for each label, or what it found in each image."""
    if isinstance(output, Output) and isinstance(output.answer, list) and len(output.answer) == 1:
        return
    if not isinstance(output, Output) or not isinstance(output.answer, Tensor):
        raise ConfigError(
            f"head {head} gives {_named(output)}; forward must give Output(logits) (manylabel.core.output)"
        )
    if output.answer.shape != (1, labels):
        shape = list(output.answer.shape)
        raise ConfigError(
            f"head {head} gives logits of shape {shape} for 1 image and {labels} labels, not [1, {labels}]"
        )


def _named(value: Any) -> str:
    if isinstance(value, Output):
        return f"an Output with {_named(value.answer)}"
    return f"a {type(value).__name__}"
