"""An ONNX file as an engine, through ONNX Runtime; no torch is needed to use it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.error import ConfigError


def need_onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ConfigError('onnxruntime is not installed: pip install "manylabel[onnx]"') from error
    return onnxruntime


class OnnxEngine:
    """On the CPU. Kernels of ONNX Runtime are faster there than torch's, and norms are folded into convolutions."""

    name = "onnxruntime"

    def __init__(self, path: Path, threads: int = 0) -> None:
        """`threads`: 0 = one for each core."""
        onnxruntime = need_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the cores are for decoding, too
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = tuple(entry.name for entry in self.session.get_inputs())
        self.names = tuple(entry.name for entry in self.session.get_outputs())

    def __call__(self, pixels: np.ndarray) -> dict[str, np.ndarray]:
        return self.run({"pixels": pixels})

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The same for files with inputs of other names; what the file does not ask for is not looked at."""
        values = self.session.run(None, {name: inputs[name] for name in self.inputs})
        return {name: value.astype(np.float32, copy=False) for name, value in zip(self.names, values, strict=True)}
