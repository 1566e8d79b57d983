"""Why a file is refused."""

from __future__ import annotations


class FileRefused(Exception):
    """A file will never be read: it says why, in words for the sender."""
