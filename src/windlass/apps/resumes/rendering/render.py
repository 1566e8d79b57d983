"""From a resume to bytes, in one of three formats."""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never, get_args

from windlass.apps.resumes.rendering.markdown import markdown
from windlass.apps.resumes.rendering.outline import outline
from windlass.apps.resumes.resume import Resume

Format: TypeAlias = Literal["markdown", "docx", "pdf"]
FORMATS: tuple[Format, ...] = get_args(Format)
MEDIA_TYPES: dict[Format, str] = {
    "markdown": "text/markdown; charset=utf-8",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pdf": "application/pdf",
}
EXTENSIONS: dict[Format, str] = {"markdown": "md", "docx": "docx", "pdf": "pdf"}


def render(resume: Resume, format: Format) -> bytes:
    """The file. Takes up to some tens of milliseconds of processor time: call it in a thread."""
    shown = outline(resume)
    match format:
        case "markdown":
            return markdown(shown)
        case "docx":
            from windlass.apps.resumes.rendering.word import word

            return word(shown)
        case "pdf":
            from windlass.apps.resumes.rendering.pdf import pdf

            return pdf(shown)
        case _:
            assert_never(format)
