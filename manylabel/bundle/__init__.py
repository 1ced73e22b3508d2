"""A model as it leaves a run: its folder, read with care, and what it is in Python."""

from manylabel.bundle.bundle import Bundle, TaskBundle
from manylabel.bundle.files import as_bundle, check_answer, find_bundle, load_bundle, save_bundle

__all__ = ["Bundle", "TaskBundle", "as_bundle", "check_answer", "find_bundle", "load_bundle", "save_bundle"]
