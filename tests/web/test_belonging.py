"""What an enqueue meets of another user's is neither told nor touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.conftest import Ask
from windlass import Windlass
from windlass.stores.contract import Scope
from windlass.web.belonging import own_key
from windlass.web.callers import Caller


@pytest.mark.parametrize("conflict", ["raise", "existing"])
async def test_a_job_of_others_that_a_declared_key_meets_is_not_told(app: Windlass, ask: Ask, conflict: str) -> None:
    @app.job(unique="recount:{facility}")
    async def recount(facility: str, note: str = "") -> None:
        """Count."""

    @app.job(idempotent=True)
    async def once(facility: str) -> None:
        """Do it once."""

    async with ask("bob") as bob, ask() as ann:
        for type_ in ("recount", "once"):
            body: dict[str, Any] = {"type": type_, "payload": {"facility": "7"}, "onConflict": conflict}
            theirs = await bob.post("/queue/enqueue", json=body)
            assert theirs.status_code == 201
            refused = await ann.post("/queue/enqueue", json=body)
            keyed = await ann.post("/queue/enqueue", json=body, headers={"Idempotency-Key": "k" + type_})
            many = await ann.post("/queue/enqueue/many", json={"jobs": [body]})
            assert (refused.status_code, keyed.status_code) == (409, 409)
            assert many.json()["items"][0]["verdict"] == "refused"
            for answer in (refused, keyed, many):
                assert theirs.json()["id"] not in answer.text + json.dumps(dict(answer.headers))
            again = await bob.post("/queue/enqueue", json=body)  # one's own is
            assert theirs.json()["id"] in again.text
    assert (await app.jobs.count()).n == 2


async def test_a_job_of_others_is_not_replaced(app: Windlass, ask: Ask) -> None:
    @app.job(unique="recount:{facility}")
    async def recount(facility: str, note: str = "") -> None:
        """Count."""

    async with ask("bob") as bob, ask() as ann:
        theirs = await bob.post("/queue/enqueue", json={"type": "recount", "payload": {"facility": "7"}})
        body = {"type": "recount", "payload": {"facility": "7", "note": "ann's"}, "onConflict": "replace"}
        assert (await ann.post("/queue/enqueue", json=body)).status_code == 422
        assert (await ann.post("/queue/enqueue/many", json={"jobs": [body]})).json()["refused"] == 1
        for _ in range(2):
            own = await ann.post("/queue/enqueue", json={**body, "uniqueKey": "mine"})
            assert own.status_code == 201
    assert (await app.jobs.get(theirs.json()["id"])).payload == {"facility": "7"}
    assert (await app.jobs.count()).n == 2


def test_no_two_owners_have_a_key_in_common() -> None:
    def key(owner: str, given: str) -> str:
        return own_key(Caller("x", owner, frozenset({Scope.ENQUEUE})), given)

    keys = [key(*one) for one in (("a", "b/c"), ("a/b", "c"), ("a%2Fb", "c"), ("a", "b%2Fc"), ("a%", "/c"), ("a", "c"))]
    assert len(set(keys)) == len(keys)
    assert key("ann", "x") == "ann/x"
