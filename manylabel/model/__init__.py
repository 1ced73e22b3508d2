"""images → backbone → {task: neck → head}"""

from manylabel.model.model import Model, evaluating
from manylabel.model.neck import build_neck
from manylabel.model.task_model import TaskModel, answer_of, blend, counts_of

__all__ = ["Model", "TaskModel", "answer_of", "blend", "build_neck", "counts_of", "evaluating"]
