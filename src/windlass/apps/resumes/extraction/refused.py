"""Why a document is refused."""

from __future__ import annotations


class DocumentRefused(Exception):
    """A document will never be read: it says why, in words for the person who sent it."""
