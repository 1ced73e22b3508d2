"""images → backbone → {task: neck → head}"""

from manylabel.model.model import Model, evaluating
from manylabel.model.task_model import TaskModel, answer_of, blend, counts_of

__all__ = ["Model", "TaskModel", "answer_of", "blend", "counts_of", "evaluating"]
