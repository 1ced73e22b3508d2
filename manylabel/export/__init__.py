"""Other formats for other runtimes, each proved equal to the original before it is kept."""
