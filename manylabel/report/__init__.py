"""Results, and findings about data, as one HTML file each that works offline. Reads JSON only; never needs the model."""

from manylabel.report.data_page import write_data_page
from manylabel.report.page import report_from_files, write_report

__all__ = ["report_from_files", "write_data_page", "write_report"]
