"""Which of the applications that ship can run here: each needs its extra."""

from __future__ import annotations

from importlib.util import find_spec

SHIPPED = "windlass.apps.shipped:app"
"""what runs where no application is named"""
_NEEDED = {
    "imports": ("python_calamine", "openpyxl", "sqlalchemy", "xlsxwriter"),
    "files": ("fastapi",),
    "resumes": ("charset_normalizer", "docx", "pypdfium2", "snowballstemmer", "sqlalchemy", "typst"),
}


def shipped() -> list[str]:
    """The names of those whose extra is installed."""
    return [name for name, modules in _NEEDED.items() if all(find_spec(module) is not None for module in modules)]
