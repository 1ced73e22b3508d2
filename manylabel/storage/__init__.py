"""Files: how they become whole, who may be overwritten, and how those are read that a stranger may have written."""
