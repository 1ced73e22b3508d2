"""An ONNX file as an engine, through OpenVINO; no torch is needed to use it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.engine.onnx import brief
from manylabel.error import ConfigError, EngineError
from manylabel.storage.plain_file import open_plain


def need_openvino() -> Any:
    try:
        import openvino
    except ImportError as error:
        raise ConfigError('openvino is not installed: pip install "manylabel[openvino]"') from error
    return openvino


class OpenVinoEngine:
    """On the CPU, in float32: left alone, OpenVINO computes in bfloat16 where the processor can."""

    name = "openvino"

    def __init__(self, path: Path, threads: int = 0) -> None:
        """`threads`: 0 = one for each core."""
        openvino = need_openvino()
        open_plain(path, EngineError).close()
        try:
            core = openvino.Core()
            how = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
            self.model = core.compile_model(core.read_model(str(path)), "CPU", how)
        except Exception as error:  # of many kinds, which have nothing but Exception in common
            raise EngineError(f"{path} is no model that OpenVINO can open ({brief(error)})") from error
        self.names = tuple(entry.any_name for entry in self.model.outputs)
        self._own = threading.local()  # a request works for one thread at a time

    def run(self, inputs: Mapping[str, np.ndarray], names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """As of OnnxEngine; here everything is computed."""
        if not hasattr(self._own, "request"):
            self._own.request = self.model.create_infer_request()
        request = self._own.request
        try:
            request.infer({name: np.ascontiguousarray(value) for name, value in inputs.items()})
        except Exception as error:
            raise EngineError(f"OpenVINO cannot compute this ({brief(error)})") from error
        wanted = self.names if names is None else names  # a tensor may have several
        return {name: np.array(request.get_tensor(name).data, np.float32) for name in wanted}
