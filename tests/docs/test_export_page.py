"""docs/export.md: its program, with onnxruntime alone, decides as the bundle does; its limits are those of the code."""

from __future__ import annotations

import json
from pathlib import Path

import without_torch
from doc_blocks import HERE, blocks

import manylabel as ml
from manylabel.exporting.proof import FEWEST, LIMITS

TEXT = (HERE / "docs" / "export.md").read_text(encoding="utf-8")


def test_the_program_decides_as_the_bundle(trained: Path, photos: Path, tmp_path: Path) -> None:
    (program,) = [block.text for block in blocks(TEXT) if "onnxruntime" in block.text and "import json" in block.text]
    assert len(program.splitlines()) <= 23
    assert "manylabel" not in program.replace('["manylabel"]', "")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    file = ml.export(trained, tmp_path / "mine.onnx").file
    files = sorted((photos / "images").iterdir())
    done = without_torch.python(tmp_path, "program.py", file, *files)
    assert done.returncode == 0, done.stderr
    said = [set(json.loads(line)) for line in done.stdout.splitlines()]
    meant = [set(found.present) for found in ml.Predictor.load(trained).predict(files)]
    assert said == meant
    assert any(meant)


def test_its_limits_are_those_of_the_code() -> None:
    plain, full = LIMITS["plain", "f32"], LIMITS["full", "f32"]
    assert f"differ by {plain.logits:.0e} at most".replace("e-0", "e-") in TEXT
    assert plain.flipped == 0
    assert f"differ by {full.pixels} grey levels at most; {full.flipped:.1%} of".replace("%", " %") in TEXT
    assert f"more than {full.furthest} from its threshold" in TEXT
    int8 = LIMITS["plain", "int8"]
    assert f"mAP loses {int8.mean_ap} points at most, no label with {FEWEST} positives" in TEXT
    assert f"loses more than {int8.label_ap:g} |" in TEXT
