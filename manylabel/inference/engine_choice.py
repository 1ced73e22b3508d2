"""Which engine computes an exported file: one that is named, or the fastest that is equal, measured once and remembered."""

from __future__ import annotations

import os
import platform
import time
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.cache_folder import cache_folder
from manylabel.engine.openvino import OpenVinoEngine
from manylabel.error import ConfigError, EngineError
from manylabel.inference.exported_file import ExportedFile
from manylabel.storage.atomic import sha256, write_json
from manylabel.storage.own_file import read_own_json
from manylabel.storage.receipt import MADE_BY
from manylabel.suggest import closest

ENGINES = ("auto", "onnx", "openvino")
EQUAL = 1e-4  # of logits
BATCH, ROUNDS = 8, 5
SIDES = (96, 128)  # of the picture that the full form is measured with


def with_engine(file: ExportedFile, engine: str) -> ExportedFile:
    """The same file, computed by this engine."""
    if engine not in ENGINES:
        raise ConfigError(f"an exported file cannot be computed by {engine!r:.40}{closest(engine, ENGINES)}")
    chosen = _remembered(file) if engine == "auto" else engine
    if chosen == "onnx":
        return file
    other = OpenVinoEngine(file.path)
    if engine != "auto" and (difference := _difference(file, other)) > EQUAL:  # auto has looked already
        raise EngineError(
            f"{file.path}: OpenVINO's logits differ by {difference:.2g} from those of ONNX Runtime, with which the file was "
            "proved; take --engine onnx"
        )
    return replace(file, engine=other)


def _difference(file: ExportedFile, other: OpenVinoEngine) -> float:
    """The largest of any logit."""
    inputs, names = {file.input: _made_up(file)}, [task.outputs["logits"] for task in file.tasks.values()]
    right, found = file.engine.run(inputs, names), other.run(inputs, names)
    return max(float(np.abs(found[name] - right[name]).max()) for name in names)


def _remembered(file: ExportedFile) -> str:
    """The fastest of the engines that are here and give the same logits."""
    if find_spec("openvino") is None:
        return "onnx"
    place = cache_folder() / "engines" / f"{sha256(file.path)[:32]}.json"
    circumstances = {"machine": platform.node(), "processor": _processor(), "cores": os.cpu_count()}
    try:
        known = read_own_json(place)
    except (OSError, ValueError):
        known = {}
    if known.get("circumstances") == circumstances and known.get("engine") in ENGINES[1:]:
        return str(known["engine"])
    speeds = _speeds(file)
    engine = max(speeds, key=lambda name: speeds[name])
    told = {"made_by": MADE_BY, "engine": engine, "circumstances": circumstances, "images_per_second": speeds}
    with suppress(OSError):  # then it is measured again
        write_json(place, told)
    return engine


def _speeds(file: ExportedFile) -> dict[str, float]:
    """Images per second of each that is equal to ONNX Runtime, with which the file was proved."""
    inputs = {file.input: _made_up(file)}
    names = [task.outputs["logits"] for task in file.tasks.values()]
    engines: dict[str, Any] = {"onnx": file.engine}
    try:
        other = OpenVinoEngine(file.path)
        if _difference(file, other) <= EQUAL:
            engines["openvino"] = other
    except EngineError:
        pass
    seconds: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, engine in engines.items():
            start = time.perf_counter()
            engine.run(inputs, names)
            seconds[name] = min(seconds.get(name, np.inf), time.perf_counter() - start)
    return {name: round(BATCH / value, 1) for name, value in seconds.items()}


def _made_up(file: ExportedFile) -> np.ndarray:
    rng = np.random.default_rng(0)
    if file.form == "full":
        return rng.integers(0, 256, (*SIDES, 3)).astype(np.uint8)
    side = next(iter(file.tasks.values())).facts.preprocess.size
    return rng.standard_normal((BATCH, 3, side, side)).astype(np.float32)


def _processor() -> str:
    """Its name, as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
