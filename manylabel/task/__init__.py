"""What a model is asked of an image: any number of labels, exactly one, or objects. All in which they differ is here."""

from manylabel.task.base import AnyTask, Evidence, Targets, Task, together, total_of
from manylabel.task.classification import MULTI_LABEL, Classification, MultiLabel, Scores, SingleLabel
from manylabel.task.detection import Detection
from manylabel.task.kinds import KINDS, kind_of, task_of

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
    "task_of",
    "together",
    "total_of",
]
