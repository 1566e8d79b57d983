"""Handlers that run in a process of their own, which must find them by their module."""

from __future__ import annotations

import os

from windlass import Windlass

app = Windlass(os.environ.get("CREW_URL", "sqlite:///:memory:"), namespace=os.environ.get("CREW_NAMESPACE"))


@app.job(process=True)
def leave_a_child(name: str) -> str:
    """Enqueue a job from a process of its own."""
    return app.enqueue_sync("leaf", {"name": name}).id
