"""torch → ONNX: any outputs of ours as a file that runs without torch, compared with torch before it is kept."""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from manylabel.engine.onnx import OnnxEngine, need_onnxruntime
from manylabel.engine.outputs import PIXELS, HeadOutputs, Outputs
from manylabel.error import ConfigError, EngineError
from manylabel.storage.atomic import replacing

BATCHES = (1, 5)


def need_onnx() -> None:
    """Stop unless everything is installed that an export needs."""
    need_onnxruntime()
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ConfigError('onnxscript is not installed: pip install "manylabel[onnx]"') from error


def export_head(head: nn.Module, stages: Mapping[str, Tensor], path: Path) -> float:
    """A head as a function of its stages' maps → `path`; `stages` are examples [B, C, H, W]. See `export_onnx`."""
    outputs = HeadOutputs(head)
    return export_onnx(outputs, {name: stages[name] for name in outputs.stages}, path)


def export_onnx(outputs: Outputs, examples: Mapping[str, Tensor], path: Path) -> float:
    """These outputs as ONNX with any batch size; its inputs are named and shaped like the examples.

    Returns the largest difference to torch over batches of 1 and 5; above the tolerance nothing is written.
    """
    need_onnx()
    with replacing(path) as temporary:
        return _exported(outputs, examples, temporary)[1]


def onnx_engine(outputs: Outputs, size: int) -> OnnxEngine:
    """Outputs of images of `size` pixels through ONNX Runtime, after they were found equal to torch's."""
    need_onnx()
    with tempfile.TemporaryDirectory() as folder:
        example = torch.zeros(2, 3, size, size, dtype=torch.uint8)
        return _exported(outputs, {PIXELS: example}, Path(folder) / "model.onnx")[0]


def write_onnx(outputs: Outputs, examples: Mapping[str, Tensor], path: Path) -> None:
    """These outputs as ONNX, not compared with anything. Raises what the exporter raises."""
    sizes = {place: torch.export.Dim(name) for place, name in outputs.free.items()}
    with quiet_export(), torch.no_grad():
        torch.onnx.export(
            outputs.eval(),
            (),
            str(path),
            kwargs={"inputs": dict(examples)},
            input_names=list(examples),
            output_names=list(outputs.names),
            dynamic_shapes={"inputs": dict.fromkeys(examples, sizes)},
            dynamo=True,
            external_data=False,
        )


def _exported(outputs: Outputs, examples: Mapping[str, Tensor], path: Path) -> tuple[OnnxEngine, float]:
    try:
        write_onnx(outputs, examples, path)
        engine = OnnxEngine(path, torch.get_num_threads())
        gap = difference(engine, outputs, examples)
    except Exception as error:
        brief = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise EngineError(f"ONNX Runtime cannot compute these {outputs.what} ({brief})") from error
    if not gap <= outputs.tolerance:
        shown = f"{gap:.1%}" if outputs.relative else f"{gap:.2g}"
        raise EngineError(
            f"{engine.name} gives {outputs.what} that differ by {shown} from torch's: the export is not kept"
        )
    return engine, gap


@torch.inference_mode()
def difference(engine: OnnxEngine, outputs: Outputs, examples: Mapping[str, Tensor]) -> float:
    """How far an engine is from torch, for made-up inputs of each batch size; not a number where one is not."""
    gaps = []
    for batch in BATCHES:
        inputs = {name: _made_up(example, batch) for name, example in examples.items()}
        found = engine.run({name: value.numpy() for name, value in inputs.items()})
        expected = {name: value.float().numpy() for name, value in zip(outputs.names, outputs(inputs), strict=True)}
        gaps.append(outputs.gap(found, expected))
    return float(np.max(gaps))


def _made_up(example: Tensor, batch: int) -> Tensor:
    """Images, or features of the example's shape."""
    generator = torch.Generator().manual_seed(batch)
    if example.dtype != torch.uint8:
        return torch.randn(batch, *example.shape[1:], generator=generator)
    coarse = torch.rand(batch, 3, 8, 8, generator=generator)
    fine = nn.functional.interpolate(coarse, tuple(example.shape[-2:]), mode="bicubic").clamp(0, 1)
    return (255 * fine).to(torch.uint8)


@contextlib.contextmanager
def quiet_export() -> Iterator[None]:
    """The exporter talks about its own insides."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
