"""What everything else is said in: no training, no files."""
