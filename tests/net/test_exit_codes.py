"""Scripts decide by exit codes: each command ends with the one that it always had (frozen/exit_codes.yaml)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import manylabel, settings
from net.surface import FOLDER

CODES: dict[str, int] = yaml.safe_load((FOLDER / "exit_codes.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", CODES)
def test_a_command_ends_as_it_did(command: str, trained: Path, photos: Path, tmp_path: Path) -> None:
    words: dict[str, Any] = {
        "photos": photos,
        "photo": photos / "images" / "photo000.jpg",
        "run": trained,
        "new": tmp_path / "new",
    }
    words["tiny"] = " ".join(settings("backbone.name=test_efficientnet", "backbone.weights=none"))
    words |= {"broken": tmp_path / "broken.jpg", "some": tmp_path / "some", "copy": tmp_path / "copy"}
    words["broken"].write_bytes(b"")
    if "{some}" in command:
        shutil.copytree(photos, words["some"])
        for i in range(5):
            (words["some"] / "images" / f"photo{i:03d}.jpg").write_bytes(b"")
    if "{copy}" in command:
        shutil.copytree(trained, words["copy"])
    before = {path: path.read_bytes() for folder in (trained, photos) for path in folder.rglob("*") if path.is_file()}
    answer = manylabel(*command.format(**words).split(), cwd=tmp_path)
    assert answer.returncode == CODES[command], answer.stdout + answer.stderr
    if answer.returncode == 2:
        assert answer.stderr, "a refusal says why"
        if "{some}" not in command:  # such a run begins, and ends when it has looked at the images
            assert not words["new"].exists(), "what was refused leaves nothing behind"
    after = {path: path.read_bytes() for folder in (trained, photos) for path in folder.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path in before} == before
