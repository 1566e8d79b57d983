"""PDFium, whose bindings have no types: here alone they are imported, and are Any."""

from __future__ import annotations

from typing import Any

import pypdfium2 as _pdf  # type: ignore[import-untyped]  # it has no types
import pypdfium2.raw as _raw  # type: ignore[import-untyped]  # the same

pdf: Any = _pdf
"""documents and pages"""
raw: Any = _raw
"""the functions of the library itself, for what documents and pages do not do, or do slowly"""
