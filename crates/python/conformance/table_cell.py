"""Texts in the cells of the pages' tables."""

from __future__ import annotations


def escaped(text: str) -> str:
    """The text as Markdown shows it letter by letter within a cell."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
