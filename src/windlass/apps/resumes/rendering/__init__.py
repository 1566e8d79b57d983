"""From a resume to a file: Markdown, DOCX, PDF."""
