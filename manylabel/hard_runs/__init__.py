"""Hard instances of finished runs: one run, or two beside each other."""

from manylabel.hard_runs.study import study_runs

__all__ = ["study_runs"]
