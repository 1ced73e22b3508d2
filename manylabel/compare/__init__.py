"""Several runs beside each other: which is better, for which labels, how surely, and at what cost."""

from manylabel.compare.comparison import compare_runs
from manylabel.compare.runs import Method, Run, methods_of, read_run
from manylabel.compare.tasks import compare_tasks

__all__ = ["Method", "Run", "compare_runs", "compare_tasks", "methods_of", "read_run"]
