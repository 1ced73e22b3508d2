"""Word vectors from text files of every kind people have."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from manylabel.config import Part
from manylabel.error import ConfigError, DataError
from manylabel.text import EMBEDDERS, Embedder

GLOVE = """the 0.1 0.2 0.3
traffic 1 0 0
light 0 1 0
dog -1.5 2e-1 3
hot-dog 4 4 4
New_York 7 7 7
at name@domain.com 5 5 5
"""


def embedder(folder: Path, text: str, name: str = "vectors.txt") -> Embedder:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    built: Embedder = EMBEDDERS.build(Part("file", {"path": str(path)}))
    return built


def test_a_word_has_its_vector_and_several_words_their_mean(tmp_path: Path) -> None:
    vectors = embedder(tmp_path, GLOVE).embed(["dog", "traffic light"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [[-1.5, 0.2, 3], [0.5, 0.5, 0]], rtol=1e-6)


@pytest.mark.parametrize("label", ["hot dog", "Hot-Dog", "HOT_DOG"])
def test_a_label_as_a_whole_comes_first(tmp_path: Path, label: str) -> None:
    assert embedder(tmp_path, GLOVE).embed([label]).tolist() == [[4, 4, 4]]


@pytest.mark.parametrize("label", ["Dog", "dog", " dog"])
def test_case_and_spaces_do_not_matter(tmp_path: Path, label: str) -> None:
    assert embedder(tmp_path, GLOVE).embed([label])[0, 2] == 3


def test_word2vec_begins_with_its_size(tmp_path: Path) -> None:
    vectors = embedder(tmp_path, "2 3\ncat 1 2 3\ndog 4 5 6\n").embed(["dog", "cat"])
    assert vectors.tolist() == [[4, 5, 6], [1, 2, 3]]


def test_words_with_spaces_inside_are_read_from_the_right(tmp_path: Path) -> None:
    assert embedder(tmp_path, "cat 1 2 3\nat name 7 8 9\n").embed(["at name"]).tolist() == [[7, 8, 9]]


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(gzip.compress(GLOVE.encode()))
    built = EMBEDDERS.build(Part("file", {"path": str(path)}))
    assert built.embed(["dog"])[0, 2] == 3


def test_damaged_gzip(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(GLOVE.encode() * 50))
    whole[40:60] = b"\xff" * 20
    (tmp_path / "vectors.txt.gz").write_bytes(whole)
    with pytest.raises(DataError, match="cannot read"):
        EMBEDDERS.build(Part("file", {"path": str(tmp_path / "vectors.txt.gz")})).embed(["dog"])


def test_a_label_without_a_vector_is_named_with_the_nearest_words(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        embedder(tmp_path, GLOVE).embed(["dog", "lihgt", "zeppelin"])
    message = str(error.value)
    assert "2 labels have no word vector in word vectors of vectors.txt" in message
    assert "'lihgt': nearest words: light" in message
    assert "'zeppelin': nearest words: nothing is spelled like it" in message
    assert "minilm" in message


def test_a_word_that_is_missing_among_others_is_said(tmp_path: Path) -> None:
    made = embedder(tmp_path, GLOVE)
    assert made.embed(["dog qwerty"]).tolist() == made.embed(["dog"]).tolist()
    made.embed(["dog qwerty"])
    assert made.notes == ["label 'dog qwerty': no vector for qwerty; the other words speak for it"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cat 1 2 3\ndog 1 2\n", "row 2: 2 numbers where the file has 3"),
        ("cat 1 2 x\n", "row 1: not a word with its numbers"),
        ("", "row 1: not a word with its numbers"),
        ("cat 1 2 3\ndog 1 two 3\n", "row 2: could not convert string to float"),
        ("cat 1 2 3\ndog nan 2 3\n", "zero or not finite"),
        ("cat 1 2 3\ndog 0 0 0\n", "text vector of label 'dog' is zero"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_the_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        embedder(tmp_path, text).embed(["dog"])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing.txt is not a file"):
        EMBEDDERS.build(Part("file", {"path": str(tmp_path / "nothing.txt")})).embed(["dog"])
    with pytest.raises(ConfigError, match=r"text.path"):
        EMBEDDERS.build("file")
