"""Cells that a spreadsheet shows instead of running: a leading =, +, -, @ would start a formula."""

from __future__ import annotations


def safe_cell(text: str) -> str:
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
