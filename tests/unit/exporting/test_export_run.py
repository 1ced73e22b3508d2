"""A run as an ONNX file: the same answers as its bundle, and nothing is left behind that does not give them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import manylabel
from explained import bundle, photos
from net.kept_runs import ARCHIVE, ONE_TASK, PHOTOS, unpack
from PIL import Image

import manylabel as ml
from manylabel.bundle import TaskBundle
from manylabel.engine.onnx import OnnxEngine
from manylabel.error import BundleError, ConfigError, EngineError, ManylabelError
from manylabel.exporting import proof
from manylabel.exporting.export_run import export_tasks
from manylabel.head import HEADS, LabelKnowledge
from manylabel.inference.exported import ExportedLabels
from manylabel.inference.exported_file import KEY, open_exported
from manylabel.inference.predictor import Predictor
from manylabel.labels import LabelSpace
from manylabel.storage.atomic import sha256

SMALL = ("head.dim=24", "head.heads=4", "head.hidden=20")
WORDS = LabelKnowledge(np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32))
KINDS: dict[str, tuple[str, ...]] = {
    **{name: (f"head.name={name}",) for name in HEADS.names()},
    "words": ("head.name=ml_decoder", *SMALL, "head.query=text"),
    "groups": ("head.name=ml_decoder", *SMALL, "head.groups=3"),
    "mixed for each label": ("head.name=linear", "neck.name=rm", "neck.stages=stage-1", "neck.share=label"),
    "half frozen": ("head.name=ml_decoder", *SMALL, "head.stages=stage-2,final", "backbone.freeze=partial"),
    "one label": ("kind=single_label", "loss.name=cross_entropy", "head.name=linear"),
    "routed": ("backbone.name=moe_vit", "head.name=linear"),
    "cropped": ("head.name=linear", "backbone.resize=crop"),
    "padded": ("head.name=linear", "backbone.resize=pad"),
}
QUICK = ("linear",)  # an export takes seconds
MATRIX = [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in KINDS]


def small_bundle(kind: str) -> TaskBundle:
    """With random weights, and thresholds that some scores reach."""
    settings = KINDS[kind]
    named = {"backbone": "moe_vit"} if "backbone.name=moe_vit" in settings else {}
    given = bundle(*(s for s in settings if not s.startswith("backbone.name")), knowledge=WORDS, **named)
    return replace(given, thresholds=np.linspace(0.3, 0.7, 6))


def check_equal(ours: Predictor, theirs: Predictor, images: list[Path] | list[Image.Image]) -> None:
    for a, b in zip(ours.predict(images), theirs.predict(images), strict=True):
        assert a.image == b.image
        assert {e.label: e.score for e in a.labels} == pytest.approx({e.label: e.score for e in b.labels}, abs=1e-5)
        assert {e.label: e.threshold for e in a.labels} == {e.label: e.threshold for e in b.labels}
        assert set(a.present) == set(b.present)


@pytest.mark.parametrize("kind", MATRIX)
@pytest.mark.parametrize("form", ["plain", "full"])
def test_every_head_gives_what_its_bundle_gives(kind: str, form: str, tmp_path: Path) -> None:
    given = small_bundle(kind)
    found = export_tasks({"labels": given}, tmp_path / "mine.onnx", form)
    (proved,) = found.proofs.values()
    assert proved.images == 32
    assert proved.flipped == 0
    assert proved.logits <= 1e-4 if form == "plain" else proved.pixels <= 1
    check_equal(Predictor.load(found.file), Predictor(given, "cpu"), photos(7))  # one batch of 7


@pytest.mark.parametrize("labels", [1, *(pytest.param(count, marks=pytest.mark.slow) for count in (80, 1000))])
def test_any_number_of_labels(labels: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import explained

    monkeypatch.setattr(explained, "LABELS", tuple(f"label {i}" for i in range(labels)))
    given = bundle("head.name=ml_decoder", *SMALL)
    assert len(given.labels) == labels
    found = export_tasks({"labels": given}, tmp_path / "mine.onnx")
    file = open_exported(found.file)
    for batch in (1, 5):
        shown = ExportedLabels(file, "labels")
        assert shown.logits([shown.prepared(photo) for photo in photos(batch)]).shape == (batch, labels)
    check_equal(Predictor(file), Predictor(given, "cpu"), photos(5))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(ARCHIVE, tmp_path_factory.mktemp("kept")) / "runs"


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_TASK)
def test_trained_runs_are_proved_on_what_they_held_out(name: str, kept: Path, tmp_path: Path) -> None:
    found = ml.export(kept / name, tmp_path / "mine.onnx")
    (proved,) = found.proofs.values()
    assert "held-out images of" in proved.source
    assert proved.images > 1
    assert proved.flipped == 0
    check_equal(Predictor.load(found.file), Predictor.load(kept / name), sorted(PHOTOS.iterdir()))


def test_the_file_says_what_it_is(trained: Path, tmp_path: Path) -> None:
    found = ml.export(trained, tmp_path / "mine.onnx")
    told = json.loads(OnnxEngine(found.file).metadata[KEY])
    theirs = ml.load_bundle(trained)
    assert told["bundle"] == sha256(trained / "bundle" / "checksums.json")
    assert told["made_by"].startswith("manylabel ")
    assert (told["precision"], told["form"], told["input"]) == ("f32", "plain", "images")
    task = told["tasks"]["labels"]
    assert task["kind"] == "multi_label"
    assert [entry["name"] for entry in task["labels"]["labels"]] == list(theirs.labels)
    assert [entry["threshold"] for entry in task["labels"]["labels"]] == theirs.thresholds.tolist()
    assert task["labels"]["activation"] == "sigmoid"
    assert task["preprocess"]["size"] == theirs.preprocess.size
    proved = told["proof"]["labels"]
    assert "held-out images" in proved["source"]
    assert proved["faster"] is found.faster
    assert proved["file_images_per_second"] > 0
    assert {"torch", "onnx", "onnxruntime"} <= told["versions"].keys()
    onnx.checker.check_model(onnx.load(found.file))
    page = found.page.read_text(encoding="utf-8")
    assert proved["source"] in page
    assert str(proved["file_images_per_second"]) in page
    assert {path.name for path in tmp_path.iterdir()} == {"mine.onnx", "mine.onnx.html", ".mine.onnx.manylabel"}


def test_without_the_data_of_the_run_made_up_images_do(trained: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(trained / "bundle", tmp_path / "bundle")
    found = ml.export(tmp_path / "bundle", tmp_path / "mine.onnx")
    (proved,) = found.proofs.values()
    assert proved.source.startswith("32 generated images (those of the run cannot be read: there is no run in")


# --- what is not equal, not faster, not ours -------------------------------------------------------------------------


def _nudge(monkeypatch: pytest.MonkeyPatch, by: float) -> None:
    right = OnnxEngine.run

    def wrong(self: OnnxEngine, inputs: dict[str, np.ndarray], names: tuple[str, ...] | None = None) -> object:
        return {name: value + np.float32(by) for name, value in right(self, inputs, names).items()}

    monkeypatch.setattr(OnnxEngine, "run", wrong)


@pytest.mark.parametrize(("by", "said"), [(2e-4, r"logits differ by 0\.0002"), (3.0, "decisions are others")])
def test_a_file_that_differs_is_not_left_behind(
    by: float, said: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _nudge(monkeypatch, by)
    with pytest.raises(EngineError, match=f"held-out images .* differs from the bundle: .*{said}.*not kept"):
        ml.export(trained, tmp_path / "mine.onnx")
    assert not list(tmp_path.iterdir())


def test_scores_that_are_no_numbers_are_not_kept(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _nudge(monkeypatch, float("nan"))
    with pytest.raises(BundleError, match="no numbers"):
        ml.export(trained, tmp_path / "mine.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("limit", ["flipped", "furthest", "pixels", "mean_ap", "label_ap"])
def test_each_limit_counts(limit: str) -> None:
    found = proof.Proof("", 10, 100, 0.5, 7, 0.1, 3, 1.0, 4.0, 1.0, 2.0, 1)
    beyond = {"flipped": 0.06, "furthest": 0.09, "pixels": 2, "mean_ap": 0.9, "label_ap": 3.9}
    within = {"flipped": 0.07, "furthest": 0.1, "pixels": 3, "mean_ap": 1.0, "label_ap": 4.0}
    assert len(list(proof._beyond(found, proof.Limits(**{limit: beyond[limit]})))) == 1
    assert not list(proof._beyond(found, proof.Limits(**{limit: within[limit]})))
    assert not list(proof._beyond(found, proof.Limits(**within)))


def test_average_precision_that_is_lost() -> None:
    matrix = np.array([[1, 1]] * 20 + [[0, 0]] * 20, np.int8)
    right = np.concatenate([np.full((20, 2), 0.9), np.full((20, 2), 0.1)])
    worse = right.copy()
    worse[:, 1] = np.linspace(0, 1, 40)  # negatives first: average precision is far below 1
    mean, most = proof._lost(worse, right, matrix)
    assert most == pytest.approx(2 * mean)
    assert most > 30
    assert proof._lost(worse, right, None) == (None, None)
    assert proof._lost(worse[1:], right[1:], matrix[1:])[1] is None  # too few positives to tell


def test_a_file_that_is_not_faster_is_called_so(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "_speeds", lambda *_: (100.0, 99.0))
    found = ml.export(trained, tmp_path / "mine.onnx")
    assert not found.faster
    assert "It is not faster than the bundle: 99.0 images/s against 100.0 by torch." in found.page.read_text()
    assert json.loads(OnnxEngine(found.file).metadata[KEY])["proof"]["labels"]["faster"] is False


def test_the_command_says_it(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "_speeds", lambda *_: (100.0, 99.0))
    answer = manylabel("export", trained, "--to", "onnx", "--out", tmp_path / "mine.onnx")
    assert answer.returncode == 0, answer.stderr
    assert "0 of " in answer.stdout
    assert "decisions are others" in answer.stdout
    assert "99 images/s, 100 by torch: it is NOT faster" in answer.stdout
    again = manylabel("export", trained, "--out", tmp_path / "mine.onnx")
    assert (again.returncode, "--overwrite" in again.stderr) == (2, True)


def test_only_an_earlier_export_is_replaced(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.onnx"
    ml.export(trained, out)
    before = out.read_bytes()
    with pytest.raises(ManylabelError, match="replace it with --overwrite"):
        ml.export(trained, out)
    assert out.read_bytes() == before
    ml.export(trained, out, overwrite=True)
    out.write_bytes(b"mine")
    with pytest.raises(ManylabelError, match="was not written by manylabel"):
        ml.export(trained, out, overwrite=True)
    assert out.read_bytes() == b"mine"
    other = tmp_path / "other.onnx"
    (tmp_path / "other.onnx.html").write_text("mine")
    with pytest.raises(ManylabelError, match="other.onnx.html is there already"):
        ml.export(trained, other, overwrite=True)
    assert not other.exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"to": "onx"}, "--to cannot be 'onx'; did you mean 'onnx'"),
        ({"form": "whole"}, "--form cannot be 'whole'; there is plain, full"),
    ],
)
def test_what_is_asked_for_must_exist(asked: dict[str, str], said: str, trained: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        ml.export(trained, tmp_path / "mine.onnx", **asked)
    with pytest.raises(BundleError, match="there is no task 'lables'"):
        ml.export(trained, tmp_path / "mine.onnx", task="lables")
    assert not list(tmp_path.iterdir())


# --- several tasks ---------------------------------------------------------------------------------------------------


def test_of_several_tasks_those_with_labels(kept: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="task objects finds objects.*--task labels"):
        ml.export(kept / "tasks", tmp_path / "mine.onnx")
    found = ml.export(kept / "tasks", tmp_path / "mine.onnx", task="labels")
    ours, theirs = Predictor.load(found.file), Predictor.load(kept / "tasks")
    assert ours.tasks == ("labels",)
    images = sorted(PHOTOS.iterdir())
    for a, b in zip(ours.predict(images), theirs.predict(images, task="labels"), strict=True):
        assert {e.label: e.score for e in a.labels} == pytest.approx({e.label: e.score for e in b.labels}, abs=1e-5)


@pytest.mark.parametrize("form", ["plain", pytest.param("full", marks=pytest.mark.slow)])
def test_two_tasks_in_one_file(form: str, tmp_path: Path) -> None:
    first = small_bundle("linear")
    second = replace(small_bundle("linear"), labels=LabelSpace(tuple("uvwxyz")), thresholds=np.full(6, 0.4))
    found = export_tasks({"animals": first, "letters": second}, tmp_path / "two.onnx", form)
    assert list(found.proofs) == ["animals", "letters"]
    ours = Predictor.load(found.file)
    assert ours.tasks == ("animals", "letters")
    for answer, a, b in zip(
        ours.predict(photos(3)), Predictor(first).predict(photos(3)), Predictor(second).predict(photos(3)), strict=True
    ):
        for name, expected in (("animals", a), ("letters", b)):
            scores = {entry.label: entry.score for entry in expected.labels}
            assert {entry.label: entry.score for entry in answer[name].labels} == pytest.approx(scores, abs=1e-5)
            assert set(answer[name].present) == set(expected.present)
