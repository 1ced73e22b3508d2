"""What a careful colleague would say about data before one trains on it."""

from manylabel.data.audit.duplicates import find_duplicates
from manylabel.data.audit.findings import audit
from manylabel.data.audit.inspection import Inspection, inspect_table
from manylabel.data.audit.pictures import pictures
from manylabel.data.audit.result import Audit

__all__ = ["Audit", "Inspection", "audit", "find_duplicates", "inspect_table", "pictures"]
