"""Checks: what is wrong with store, workers and jobs, or soon will be; what `windlass doctor` shows."""

from __future__ import annotations

from fastapi import APIRouter

from windlass.client.checking import Level
from windlass.web.asking import Admin, App
from windlass.web.shapes import Shape

router = APIRouter(tags=["health"])
_WORST = (Level.FAIL, Level.WARN, Level.PASS)


class CheckShape(Shape):
    """One finding; anything but a pass says what to do."""

    level: str
    name: str
    found: str
    fix: str | None


class ChecksShape(Shape):
    """All findings, and the worst of their levels."""

    level: str
    checks: list[CheckShape]


@router.get("/health", summary="What is wrong, or soon will be")
async def health(app: App, _: Admin) -> ChecksShape:
    """Every check of `windlass doctor`."""
    found = await app.health.check()
    checks = [CheckShape(level=one.level.value, name=one.name, found=one.found, fix=one.fix) for one in found]
    levels = {one.level for one in found}
    return ChecksShape(level=next((level.value for level in _WORST if level in levels), "PASS"), checks=checks)
