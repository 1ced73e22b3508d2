"""Colours that people with any eyes tell apart, for drawings and pictures."""

COLOURS = ("#1f4e79", "#c8553d", "#588157", "#8e6c8a", "#e0a458", "#3a7d84", "#7a5c3e", "#5b5b5b")
