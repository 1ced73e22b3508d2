"""What computes features fastest here: torch itself, or ONNX Runtime after its features were found equal to torch's."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from manylabel.error import ConfigError
from manylabel.model import Model
from manylabel.onnx_file import need_onnx, quiet_export
from manylabel.preprocess import Preprocess

RUNTIMES = ("auto", "torch", "onnxruntime", "compile")
WORTH_IT = 1000  # images from which on the seconds of an ONNX export are regained
TOLERANCE = 1e-3  # largest difference between two runtimes' features, relative to the largest feature


class Runtime(Protocol):
    """pixels uint8 [B, 3, S, S] → stage by name, float32 on the CPU"""

    name: str

    def __call__(self, pixels: Tensor) -> dict[str, Tensor]: ...


class TorchRuntime:
    """The model as it is, with channels last: there is no backward pass here that would mind."""

    def __init__(self, model: Model, device: torch.device | str) -> None:
        self.name = "torch"
        self.model = model.eval()
        self.device = device

    def __call__(self, pixels: Tensor) -> dict[str, Tensor]:
        with self.model.backbone.laid_out(torch.channels_last):
            stages = self.model.features(pixels.to(self.device)).stages
        return {name: stage.float().cpu() for name, stage in stages.items()}


class CompiledRuntime:
    """The model through torch.compile: half a minute to begin with, and it needs a C++ compiler."""

    def __init__(self, model: Model, device: torch.device | str) -> None:
        self.name = "torch.compile"
        self.names = model.feature_names
        self.device = device
        self.run: Any = torch.compile(_Stages(model.eval()), dynamic=False)

    def __call__(self, pixels: Tensor) -> dict[str, Tensor]:
        stages = self.run(pixels.to(self.device))
        return {name: stage.float().cpu() for name, stage in zip(self.names, stages, strict=True)}


class OnnxRuntime:
    """The model as ONNX, which folds norms into convolutions and knows faster kernels for a CPU."""

    def __init__(self, model: Model, preprocess: Preprocess) -> None:
        import onnxruntime

        self.name = "onnxruntime"
        self.names = model.feature_names
        example = torch.zeros(2, 3, preprocess.size, preprocess.size, dtype=torch.uint8)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "features.onnx"
            with quiet_export(), torch.no_grad():
                torch.onnx.export(
                    _Stages(model.eval()),
                    (example,),
                    str(path),
                    input_names=["pixels"],
                    output_names=list(self.names),
                    dynamic_shapes={"pixels": {0: torch.export.Dim("batch")}},
                    dynamo=True,
                    external_data=False,
                )
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            options.intra_op_num_threads = torch.get_num_threads()
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the cores are for decoding, too
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def __call__(self, pixels: Tensor) -> dict[str, Tensor]:
        values = self.session.run(None, {"pixels": pixels.numpy()})
        return {name: torch.from_numpy(value) for name, value in zip(self.names, values, strict=True)}


class _Stages(nn.Module):
    """Features as a tuple, in the order of `feature_names`."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        stages = self.model.features(pixels).stages
        return tuple(stages[name] for name in self.model.feature_names)


def choose_runtime(
    wanted: str, model: Model, preprocess: Preprocess, device: torch.device | str, images: int
) -> Runtime:
    """The runtime of this name. `auto` is ONNX Runtime for many images on a CPU, where it is installed and equal."""
    if wanted not in RUNTIMES:
        raise ConfigError(f"train.extract_with: {wanted!r} is none of {', '.join(RUNTIMES)}")
    plain = TorchRuntime(model, device)
    if wanted == "compile":
        return _checked(lambda: CompiledRuntime(model, device), plain, model, preprocess)
    cpu = torch.device(device).type == "cpu"
    if wanted == "torch" or (wanted == "auto" and (not cpu or images < WORTH_IT)):
        return plain
    if not cpu:
        raise ConfigError("train.extract_with=onnxruntime is for a CPU; leave it out, or use torch")
    try:
        need_onnx()
        return _checked(lambda: OnnxRuntime(model, preprocess), plain, model, preprocess)
    except ConfigError:
        if wanted != "auto":
            raise
        return plain


def _checked(make: Callable[[], Runtime], plain: Runtime, model: Model, preprocess: Preprocess) -> Runtime:
    """The runtime, after a look at whether it gives what torch gives."""
    try:
        engine = make()
        gap = difference(engine, plain, preprocess.size)
    except Exception as error:
        brief = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise ConfigError(
            f"{model.backbone.name} does not run that way here ({brief}); use train.extract_with=torch"
        ) from error
    if not gap <= TOLERANCE:
        raise ConfigError(f"{engine.name} gives features that differ by {gap:.1%} from torch's; use torch")
    return engine


@torch.inference_mode()
def difference(engine: Runtime, plain: Runtime, size: int) -> float:
    """Largest difference of any feature of some made-up images, relative to the largest feature of its stage."""
    coarse = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    pixels = nn.functional.interpolate(coarse, (size, size), mode="bicubic").clamp(0, 1)
    images = (255 * pixels).to(torch.uint8)
    ours, theirs = engine(images), plain(images)
    gaps = [(ours[name] - theirs[name]).abs().max() / theirs[name].abs().max() for name in theirs]
    return float(torch.stack(gaps).max())  # not a number where one is not
