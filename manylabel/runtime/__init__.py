"""What surrounds a run: the terminal and what the operating system answers."""
