from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from manylabel.config import Part, option
from manylabel.error import ConfigError, DataError
from manylabel.labels import ABSENT, PRESENT, UNKNOWN, LabelSpace, known, support
from manylabel.registry import Registry
from manylabel.spreadsheet import safe_cell


def _registry() -> Registry:
    registry = Registry("thing")

    @registry.register("box")
    class Box:
        """A box."""

        @dataclass(frozen=True)
        class Options:
            size: int = option(3, "how big")

        def __init__(self, options: Options, *, colour: str) -> None:
            self.size, self.colour = options.size, colour

    return registry


def test_build_uses_options_and_context() -> None:
    box = _registry().build(Part("box", {"size": 5}), colour="red")
    assert (box.size, box.colour) == (5, "red")


def test_unknown_and_duplicate_names() -> None:
    registry = _registry()
    with pytest.raises(ConfigError, match="no thing 'bix'; did you mean 'box'"):
        registry.get("bix")
    with pytest.raises(ConfigError, match="two things are called 'box'"):
        registry.register("box")(int)
    with pytest.raises(ConfigError, match="thing.sise.*did you mean 'size'"):
        registry.options(Part("box", {"sise": 1}))


def test_label_space_finds_names_and_suggests() -> None:
    labels = LabelSpace(("traffic light", "dog"))
    assert labels.index("Dog") == 1
    assert "DOG" in labels
    assert "cat" not in labels
    with pytest.raises(DataError, match="did you mean 'traffic light'"):
        labels.index("trafic light")


@pytest.mark.parametrize("names", [("dog", "Dog"), ("café", "cafe\u0301"), ("a", ""), ("x" * 1001,), ("ﬁsh", "fish")])
def test_labels_that_cannot_be_told_apart_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(DataError):
        LabelSpace(names)


def test_tri_state_counts() -> None:
    matrix = np.array([[PRESENT, UNKNOWN], [ABSENT, PRESENT], [PRESENT, UNKNOWN]], np.int8)
    assert support(matrix).tolist() == [2, 1]
    assert known(matrix).sum() == 4
    assert LabelSpace(("a", "b")).matrix([[0], [], [0, 1]]).tolist() == [[1, 0], [0, 0], [1, 1]]


def test_cells_that_would_run_in_a_spreadsheet_are_prefixed() -> None:
    assert [safe_cell(t) for t in ("=cmd()", "@x", "-1", "plain", "")] == ["'=cmd()", "'@x", "'-1", "plain", ""]
