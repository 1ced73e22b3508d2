"""MF1–MF3: nothing that runs code when it is opened, nothing hostile that gets through."""

from __future__ import annotations

import json
import os
import pickle
import re
import struct
from pathlib import Path

import pytest

import manylabel
from manylabel import run
from manylabel.bundle import load_bundle
from manylabel.error import BundleError, CheckpointError
from manylabel.storage.atomic import sha256
from manylabel.training.checkpoint import load_tensors

PACKAGE = Path(manylabel.__file__).parent
UNSAFE = {
    "torch.load without weights_only": re.compile(r"torch\.load\((?!.*weights_only=True)"),
    "pickle": re.compile(r"^\s*(import|from) (pickle|dill|cloudpickle|marshal|shelve)|pickle\.loads?\("),
    "yaml.load": re.compile(r"yaml\.(load|unsafe_load|full_load)\("),
    "eval or exec": re.compile(r"(?<![.\w])(eval|exec)\("),
}


@pytest.mark.parametrize("what", UNSAFE)
def test_mf1_no_unsafe_loading_in_the_package(what: str) -> None:
    files = list(PACKAGE.rglob("*.py"))
    assert len(files) > 40
    hits = [
        f"{path.name}:{number}"
        for path in files
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if UNSAFE[what].search(line)
    ]
    assert hits == []


@pytest.fixture
def bundle(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> Path:
    settings = [*tiny_settings, "train.epochs=1", "data.workers=0", "train.cache=off"]
    return run.train(str(photos), out=tmp_path / "run", settings=settings).bundle


def _resum(bundle: Path, name: str) -> None:
    """An attacker can write checksums, too."""
    sums = json.loads((bundle / "checksums.json").read_text())
    sums["sha256"][name] = sha256(bundle / name)
    (bundle / "checksums.json").write_text(json.dumps(sums))


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch hacked",)


def _overlapping() -> bytes:
    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    header = json.dumps({"a": entry, "b": entry}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(16)


@pytest.mark.parametrize(
    "content", [pickle.dumps(_Evil()), _overlapping(), struct.pack("<Q", 2**63) + b"{}", b"", b"{}"]
)
def test_mf2_hostile_weights_are_refused(bundle: Path, content: bytes) -> None:
    (bundle / "weights.safetensors").write_bytes(content)
    _resum(bundle, "weights.safetensors")
    with pytest.raises(BundleError):
        load_bundle(bundle)
    with pytest.raises(CheckpointError):
        load_tensors(bundle / "weights.safetensors")
    assert not Path("hacked").exists()


def test_mf2_a_bundle_stays_in_its_folder(bundle: Path, tmp_path: Path) -> None:
    sums = json.loads((bundle / "checksums.json").read_text())
    sums["sha256"]["../secret"] = "0"
    (bundle / "checksums.json").write_text(json.dumps(sums))
    with pytest.raises(BundleError, match="does not list the files"):
        load_bundle(bundle)
    del sums["sha256"]["../secret"]
    (bundle / "checksums.json").write_text(json.dumps(sums))
    outside = tmp_path / "outside.yaml"
    (bundle / "config.yaml").rename(outside)
    (bundle / "config.yaml").symlink_to(outside)
    with pytest.raises(BundleError, match="not a plain file"):
        load_bundle(bundle)


@pytest.mark.parametrize("name", ["labels.json", "config.yaml", "preprocess.json"])
def test_mf2_changed_files_are_noticed(bundle: Path, name: str) -> None:
    (bundle / name).write_text((bundle / name).read_text() + " ")
    with pytest.raises(BundleError, match=f"{name} has another checksum"):
        load_bundle(bundle)
    (bundle / name).write_text("[]")
    _resum(bundle, name)
    with pytest.raises(BundleError):
        load_bundle(bundle)


def test_mf3_hostile_labels_are_escaped_everywhere(photos: Path, tmp_path: Path, tiny_settings: list[str]) -> None:
    text = (photos / "labels.csv").read_text()
    hostile = {
        "red": "<script>window.hacked=1</script>",
        "green": "=cmd()",
        "blue": "\u202eevil",
        "white": "😀 " + "x" * 900,
    }
    for old, new in hostile.items():
        text = text.replace(old, new)
    (photos / "labels.csv").write_text(text, encoding="utf-8")
    settings = [*tiny_settings, "train.epochs=1", "data.workers=0", "data.allow_markup=true"]
    result = run.train(str(photos), out=tmp_path / "run", settings=settings)
    assert {row["name"] for row in result.results["labels"]} == {name.strip() for name in hostile.values()}
    for page in ("report.html", "bundle/README.md"):
        assert "<script>window" not in (tmp_path / "run" / page).read_text(encoding="utf-8")
    assert load_bundle(tmp_path / "run").labels.names == tuple(sorted(name.strip() for name in hostile.values()))
