"""Results as one HTML file that works offline. Reads JSON only; never needs the model."""

from manylabel.report.page import report_from_files, write_report

__all__ = ["report_from_files", "write_report"]
