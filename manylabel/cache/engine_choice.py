"""Which engine computes features: torch, or ONNX Runtime after its features were found equal to torch's."""

from __future__ import annotations

import torch

from manylabel import console
from manylabel.engine import Engine
from manylabel.engine.export import need_onnx, onnx_engine
from manylabel.engine.outputs import FeatureOutputs
from manylabel.engine.torch import TorchEngine
from manylabel.error import ConfigError, EngineError
from manylabel.model import TaskModel
from manylabel.preprocess import Preprocess

ENGINES = ("auto", "torch", "onnxruntime")
WORTH_IT = 1000  # images from which on the seconds of an ONNX export are regained


def choose_engine(
    wanted: str, model: TaskModel, preprocess: Preprocess, device: torch.device | str, images: int
) -> Engine:
    """The engine of this name. `auto` is ONNX Runtime for many images on a CPU, where it is installed and equal."""
    if wanted not in ENGINES:
        raise ConfigError(f"train.extract_with: {wanted!r} is none of {', '.join(ENGINES)}")
    cpu = torch.device(device).type == "cpu"
    plain = TorchEngine(FeatureOutputs(model.eval()), device)
    if wanted == "torch" or (wanted == "auto" and (not cpu or images < WORTH_IT)):
        return plain
    if not cpu:
        raise ConfigError("train.extract_with=onnxruntime is for a CPU; leave it out, or use torch")
    try:
        need_onnx()
    except ConfigError:
        if wanted != "auto":
            raise
        return plain
    try:
        return onnx_engine(FeatureOutputs(model), preprocess.size)
    except EngineError as error:
        if wanted != "auto":
            raise ConfigError(f"{model.backbone.name}: {error}; use train.extract_with=torch") from error
        console.warn(f"{error}; torch computes them")
        return plain
