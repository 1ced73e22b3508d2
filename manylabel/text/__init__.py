"""Text: names of labels to vectors, from word lists, a sentence encoder or files."""

from manylabel.core.discovery import import_files
from manylabel.text.base import EMBEDDERS, Embedder
from manylabel.text.given import Given
from manylabel.text.glove import Glove
from manylabel.text.minilm import MiniLM
from manylabel.text.word_file import WordFile

import_files(__name__, __path__)

__all__ = ["EMBEDDERS", "Embedder", "Given", "Glove", "MiniLM", "WordFile"]
