"""What an exported file says of itself, put into it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from manylabel.inference.exported_file import KEY
from manylabel.storage.json_text import to_json

LIBRARIES = ("torch", "timm", "onnx", "onnxscript", "onnxruntime")


def versions() -> dict[str, str]:
    """Of the libraries that made the file."""
    found = {}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def write_metadata(path: Path, facts: Mapping[str, Any]) -> None:
    """Into an ONNX file, in place of what it said before."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    onnx.helper.set_model_props(model, {KEY: to_json(facts, indent=None)})
    onnx.save(model, path)
