"""An ONNX file as an engine, through ONNX Runtime; no torch is needed to use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.error import ConfigError, EngineError
from manylabel.storage.plain_file import open_plain


def need_onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ConfigError("onnxruntime is not installed: pip install onnxruntime") from error
    return onnxruntime


def brief(error: Exception) -> str:
    """What a library says, in a line."""
    return " ".join(str(error).split())[:120] or type(error).__name__


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
        open_plain(path, EngineError).close()  # a pipe would be waited for
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # of many kinds, which have nothing but Exception in common
            reason = f"{path} is no model that ONNX Runtime can open ({brief(error)}); export it again"
            raise EngineError(reason) from error
        self.inputs = tuple(entry.name for entry in self.session.get_inputs())
        self.names = tuple(entry.name for entry in self.session.get_outputs())
        self.shapes = {entry.name: entry.shape for entry in (*self.session.get_inputs(), *self.session.get_outputs())}
        self.partly = onnxruntime.RunOptions()
        self.partly.only_execute_path_to_fetches = True
        self.partly.log_severity_level = 4  # what is wrong is said by the error
        self.metadata: Mapping[str, str] = self.session.get_modelmeta().custom_metadata_map

    def __call__(self, pixels: np.ndarray) -> dict[str, np.ndarray]:
        return self.run({"pixels": pixels})

    def run(self, inputs: Mapping[str, np.ndarray], names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """The same for files with inputs of other names; what the file does not ask for is not looked at, and what leads
        to none of the outputs `names` (None = all) is not computed."""
        wanted = self.names if names is None else tuple(names)
        try:
            values = self.session.run(wanted, {name: inputs[name] for name in self.inputs}, self.partly)
        except Exception as error:  # of many kinds, which have nothing but Exception in common
            raise EngineError(f"ONNX Runtime cannot compute this ({brief(error)})") from error
        return {name: value.astype(np.float32, copy=False) for name, value in zip(wanted, values, strict=True)}
