"""Cells that a spreadsheet shows instead of running: a leading =, +, -, @ would start a formula."""

from __future__ import annotations

STARTS = ("=", "+", "-", "@", "\t", "\r")


def safe_cell(text: str) -> str:
    return f"'{text}" if text[:1] in (*STARTS, "'") else text


def plain_cell(text: str) -> str:
    """What safe_cell was given."""
    return text[1:] if text[:1] == "'" and text[1:2] in (*STARTS, "'") else text
