"""Checkpoints that survive: safetensors (no pickle), written whole or not at all, checksummed, the newest good one wins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from manylabel.error import CheckpointError
from manylabel.storage.atomic import replacing, sha256, sweep, write_json
from manylabel.storage.json_text import parse_json, read_object
from manylabel.storage.own_file import make_way
from manylabel.storage.plain_file import KB
from manylabel.storage.tensor_file import read_tensors
from manylabel.training.state import today

BEST = "best"
NAME = re.compile(r"step-(\d{9})\.json")


@dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on: named tensors, and JSON values for the rest."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


class CheckpointFolder:
    """step-000000123.safetensors with a manifest step-000000123.json that is written last and holds the checksum."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder = folder
        self.keep = keep
        self.swept = sweep(folder)

    def save(self, step: int, checkpoint: Checkpoint) -> Path:
        path = self._write(f"step-{step:09d}", checkpoint)
        for old in self._manifests()[self.keep :]:
            old.unlink(missing_ok=True)
            old.with_suffix(".safetensors").unlink(missing_ok=True)
        return path

    def save_best(self, checkpoint: Checkpoint) -> None:
        """Beside the steps, under a name of its own."""
        self._write(BEST, checkpoint)

    def load_best(self) -> Checkpoint:
        return self._load(self.folder / f"{BEST}.json")

    def _write(self, name: str, checkpoint: Checkpoint) -> Path:
        path = self.folder / f"{name}.safetensors"
        try:
            make_way(path)
            save_tensors(path, checkpoint)
            make_way(path.with_suffix(".json"))
            write_json(path.with_suffix(".json"), {"sha256": sha256(path), "bytes": path.stat().st_size})
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"could not save {path} ({error}); the previous checkpoint is untouched") from error
        return path

    def _manifests(self) -> list[Path]:
        """Newest first."""
        return sorted((p for p in self.folder.glob("step-*.json") if NAME.fullmatch(p.name)), reverse=True)

    @property
    def finished(self) -> int:
        """How many there are, whole or damaged since; what was never finished has no manifest."""
        return len(self._manifests())

    def load_latest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint that is whole, and what was wrong with newer ones."""
        problems = []
        orphans = {p.stem for p in self.folder.glob("step-*.safetensors")} - {p.stem for p in self._manifests()}
        problems += [
            f"{stem}.safetensors has no manifest: it was not finished" for stem in sorted(orphans, reverse=True)
        ]
        for manifest in self._manifests():
            try:
                return self._load(manifest), problems
            except CheckpointError as error:
                problems.append(str(error))
        return None, problems

    def _load(self, manifest: Path) -> Checkpoint:
        path = manifest.with_suffix(".safetensors")
        try:
            expected = str(read_object(manifest, CheckpointError, most=64 * KB)["sha256"])
        except (CheckpointError, KeyError) as error:
            raise CheckpointError(f"{manifest.name} is damaged ({type(error).__name__})") from error
        if not path.is_file():
            raise CheckpointError(f"{path.name} is missing")
        if sha256(path) != expected:
            raise CheckpointError(f"{path.name} has another checksum than its manifest: it is damaged")
        found = load_tensors(path)
        return Checkpoint(today(found.tensors), found.values)


def save_tensors(path: Path, checkpoint: Checkpoint) -> None:
    """One safetensors file, replaced atomically; the values travel in its header."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata={"values": json.dumps(checkpoint.values)})


def load_tensors(path: Path) -> Checkpoint:
    tensors, texts = read_tensors(path)
    values = parse_json(texts.get("values", "{}"), f"{path}, values", CheckpointError, advice="", nan=True)
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} cannot be read: its values are no JSON object")
    return Checkpoint(tensors, values)


@contextmanager
def going_on() -> Iterator[None]:
    """What does not fit while a checkpoint is taken up is said of the checkpoint."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError) as error:
        what = (str(error) or type(error).__name__).splitlines()[0]
        raise CheckpointError(
            f"the checkpoint is damaged, or of another version ({what:.200}); train anew with --overwrite"
        ) from error


# --- optimisers as tensors and values ---------------------------------------------------------------------------


def pack_optimiser(optimiser: Optimizer) -> Checkpoint:
    state = optimiser.state_dict()
    tensors = {
        f"optimiser.{index}.{name}": value
        for index, entry in state["state"].items()
        for name, value in entry.items()
        if isinstance(value, Tensor)
    }
    scalars = {
        str(index): {name: value for name, value in entry.items() if not isinstance(value, Tensor)}
        for index, entry in state["state"].items()
    }
    groups = [
        {name: value.item() if isinstance(value, Tensor) else value for name, value in group.items()}  # LAMB counts so
        for group in state["param_groups"]
    ]
    return Checkpoint(tensors, {"groups": groups, "scalars": scalars})


def unpack_optimiser(optimiser: Optimizer, packed: Checkpoint) -> None:
    state: dict[int, dict[str, Any]] = {int(i): dict(entry) for i, entry in packed.values["scalars"].items()}
    for key, tensor in packed.tensors.items():
        if key.startswith("optimiser."):
            _, index, name = key.split(".", 2)
            state.setdefault(int(index), {})[name] = tensor
    groups = [{k: tuple(v) if k == "betas" else v for k, v in g.items()} for g in packed.values["groups"]]
    try:
        optimiser.load_state_dict({"state": state, "param_groups": groups})
    except ValueError as error:
        raise CheckpointError(f"the checkpoint belongs to another model or optimiser: {error}") from error


def trained_state(model: nn.Module) -> dict[str, Tensor]:
    """The part of the state that training changes: everything but frozen backbones, which say so of themselves."""
    skip = tuple(f"{name}." for name, module in model.named_modules() if getattr(module, "frozen", False) is True)
    return {name: tensor for name, tensor in model.state_dict().items() if not name.startswith(skip)}


def load_trained_state(model: nn.Module, state: dict[str, Tensor]) -> None:
    expected = trained_state(model)
    wrong = [n for n in expected if n not in state or state[n].shape != expected[n].shape]
    if wrong or set(state) - set(expected):
        odd = wrong[0] if wrong else sorted(set(state) - set(expected))[0]
        raise CheckpointError(f"the checkpoint belongs to another model: {odd!r} does not fit")
    model.load_state_dict(state, strict=False)


def with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(f"{prefix}."): t for n, t in tensors.items() if n.startswith(f"{prefix}.")}


def clone(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


__all__ = [
    "Checkpoint",
    "CheckpointFolder",
    "clone",
    "going_on",
    "load_tensors",
    "load_trained_state",
    "pack_optimiser",
    "save_tensors",
    "trained_state",
    "unpack_optimiser",
    "with_prefix",
    "without_prefix",
]
