"""What a model is asked of an image: any number of labels, exactly one, or objects. All in which they differ is here."""

from manylabel.core.discovery import import_files
from manylabel.core.evidence import Evidence, Scores, together
from manylabel.task.base import AnyTask, Targets, Task, total_of
from manylabel.task.classification import MULTI_LABEL, Classification, MultiLabel, SingleLabel
from manylabel.task.detection import Detection
from manylabel.task.kinds import KINDS, kind_of, register, task_of, told_by_task

import_files(__name__, __path__)

__all__ = [
    "KINDS",
    "MULTI_LABEL",
    "AnyTask",
    "Classification",
    "Detection",
    "Evidence",
    "MultiLabel",
    "Scores",
    "SingleLabel",
    "Targets",
    "Task",
    "kind_of",
    "register",
    "task_of",
    "together",
    "told_by_task",
    "total_of",
]
