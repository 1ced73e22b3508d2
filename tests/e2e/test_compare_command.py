"""`manylabel compare` as a user meets it: two heads on the same photos, HSQ's gates in the report, errors for typos."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import TINY, manylabel, settings

HSQ = ["head.name=hsq", "head.dim=16", "head.heads=2", "head.hidden=16", "head.layer_dims=8,4", "head.shared_experts=3"]
SHORT = ["train.epochs=2", "train.cache=off", "data.workers=0"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from conftest import write_labelled_photos

    folder = tmp_path_factory.mktemp("compared")
    photos = write_labelled_photos(folder / "photos", 48)
    found = {}
    for name, more in (
        ("linear", ["head.name=linear"]),
        ("hsq-0", [*HSQ, "head.adaptive=true"]),
        ("hsq-1", [*HSQ, "head.adaptive=true", "train.seed=1"]),
    ):
        found[name] = folder / name
        if name != "linear":  # without it, another seed would be judged on other images
            more = [*more, f"data.split_file={found['linear'] / 'split.csv'}"]
        done = manylabel("train", photos, "--out", found[name], *settings(*TINY, *SHORT, *more))
        assert done.returncode == 0, done.stderr
    return found


def test_a_run_tells_what_its_gates_do(runs: dict[str, Path]) -> None:
    results = json.loads((runs["hsq-0"] / "results.json").read_text())
    assert [layer["experts"] for layer in results["experts"]["layers"]] == [4, 4]
    assert all(
        0 <= layer[key] <= 1 for layer in results["experts"]["layers"] for key in ("label_entropy", "divergence")
    )
    assert all(layer["similarity"] > 0.5 for layer in results["experts"]["layers"])  # they begin near one another
    assert all(1 <= label["experts_allowed"] <= 3 for label in results["labels"])
    assert results["model"]["gmacs"] > 0
    line = json.loads((runs["hsq-0"] / "metrics.jsonl").read_text().splitlines()[-1])
    assert {
        "gate_label_entropy_1",
        "gate_divergence_1",
        "expert_similarity_2",
        "gates_collapsed_1",
        "experts_allowed",
    } <= set(line)
    assert "Which experts each label uses" in (runs["hsq-0"] / "report.html").read_text()
    assert "Entropy of a label's weights" in (runs["hsq-0"] / "report.html").read_text()
    assert "Which experts each label uses" not in (runs["linear"] / "report.html").read_text()
    judged = manylabel("evaluate", runs["hsq-0"], "--json", runs["hsq-0"] / "again.json")
    assert judged.returncode == 0, judged.stderr
    again = json.loads((runs["hsq-0"] / "again.json").read_text())
    assert again["experts"]["layers"][0]["entropy"] == pytest.approx(
        results["experts"]["layers"][0]["entropy"], abs=1e-3
    )


def test_compare_names_winners_and_losers(runs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "compared"
    done = manylabel("compare", *runs.values(), "--pair", "red,green", "--out", out, "--resamples", "100")
    assert done.returncode == 0, done.stderr
    assert "gap between red and green" in done.stdout
    assert all(f"{name} (at 0.5)" in done.stdout for name in ("CP", "CR", "CF1", "OP", "OR", "OF1"))
    found = json.loads((out / "comparison.json").read_text())
    assert [len(method["runs"]) for method in found["methods"]] == [1, 2]  # two seeds of one method
    assert found["resamples"] == 100
    assert (out / "comparison.html").is_file()
    assert (out / "labels.csv").is_file()
    assert {"mAP.png", "pair-red-green.png", "pair-gaps.png"} <= {path.name[3:] for path in (out / "figures").iterdir()}
    again = ("compare", *runs.values(), "--out", out, "--resamples", "0")
    assert manylabel(*again).returncode == 2
    asked = manylabel(*again, "--overwrite")
    assert asked.returncode == 0, asked.stderr


def test_other_images_are_no_comparison(runs: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    photos = runs["linear"].parent / "photos"
    done = manylabel("train", photos, "--out", other, "--seed", "5", *settings(*TINY, *SHORT, "head.name=linear"))
    assert done.returncode == 0, done.stderr
    compared = manylabel("compare", runs["hsq-0"], other, "--out", tmp_path / "out")
    assert compared.returncode == 2
    assert f"--set data.split_file={runs['linear'] / 'split.csv'}" in compared.stderr


def test_compare_says_what_is_wrong(runs: dict[str, Path], tmp_path: Path) -> None:
    for arguments, message in (
        ([runs["linear"]], "only one method"),
        ([runs["linear"], tmp_path / "nothing"], "there is no"),
        ([runs["linear"], runs["hsq-0"], "--pair", "red"], "two labels with a comma"),
        ([runs["linear"], runs["hsq-0"], "--pair", "red,gren"], "did you mean 'green'"),
    ):
        done = manylabel("compare", *arguments, "--out", tmp_path / "out")
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
