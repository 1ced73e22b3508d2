"""Whole numbers of 8 bits in place of floats: static, QDQ, per channel, by ONNX Runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.engine.export import quiet_export

# What is computed in whole numbers, tried one after another; the rest stays in float
CHOICES: dict[str, tuple[str, ...] | None] = {
    "all layers that have an 8-bit form": None,
    "convolutions and what joins them": ("Conv", "Add", "Clip", "Relu"),
    "convolutions": ("Conv",),
}


def quantise(source: Path, path: Path, batches: Sequence[np.ndarray], operators: tuple[str, ...] | None) -> None:
    """The plain form in `source` → `path`, its ranges measured on `batches` of normalised pixels."""
    from onnxruntime import InferenceSession
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    (entry,) = InferenceSession(str(source), providers=["CPUExecutionProvider"]).get_inputs()

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.batches: Iterator[np.ndarray] = iter(batches)

        def get_next(self) -> dict[str, Any] | None:
            batch = next(self.batches, None)
            return None if batch is None else {entry.name: batch}

    with tempfile.TemporaryDirectory() as folder, quiet_export():
        folded = Path(folder) / "folded.onnx"  # norms within convolutions
        quant_pre_process(str(source), str(folded), skip_symbolic_shape=True)
        quantize_static(
            str(folded),
            str(path),
            Reader(),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=None if operators is None else list(operators),
            per_channel=True,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},  # attention multiplies what it computed: that stays in float
        )
