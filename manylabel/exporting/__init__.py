"""From a run to files that other programs take, each compared with the bundle before it is left behind."""

from manylabel.exporting.export_run import Exported, export

__all__ = ["Exported", "export"]
