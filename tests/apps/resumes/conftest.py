"""Databases of records, each kind, and the applications under test."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import cache
from pathlib import Path

import pytest

from tests.contract.places import new_mongo, new_postgres
from tests.control.conftest import address
from tests.web.conftest import ask
from windlass.apps.resumes.records.places import records_at
from windlass.apps.resumes.records.record import Records

__all__ = ["KINDS", "ask", "records", "url"]
KINDS = ("sqlite", "postgres", "mongo")


@cache
def lasting(kind: str) -> str:
    """A database for all tests of this process: to make a new one takes longer than most of them."""
    place = new_postgres() if kind == "postgres" else new_mongo()
    return address(place)[0]


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind, without records."""
    return f"sqlite:///{tmp_path / 'r.db'}" if request.param == "sqlite" else lasting(request.param)


@pytest.fixture
async def records(url: str) -> AsyncGenerator[Records, None]:
    made = records_at(url)
    await made.prepare()
    await made.remove([one.id for one in await made.find(None, 1000)])
    yield made
    await made.close()
