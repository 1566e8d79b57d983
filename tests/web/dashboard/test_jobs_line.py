"""The line of a search as the list of jobs edits it, and what its rows say, without a browser."""

from __future__ import annotations

import pytest

from windlass import Status, Windlass
from windlass.stores.contract import Count
from windlass.web.dashboard.pages.jobs.line import Line
from windlass.web.dashboard.words import capped


def test_a_line_is_told_term_by_term() -> None:
    line = Line('  status:failed  -tag:"a b" statsu:x ran>5s ')
    assert [token.text for token in line.tokens] == ["status:failed", '-tag:"a b"', "statsu:x", "ran>5s"]
    assert [token.walks for token in line.tokens] == [False, True, False, True]
    assert "did you mean status" in str(line.tokens[2].problem)
    assert line.tokens[1].rest == "status:failed statsu:x ran>5s"
    assert not line.good
    assert Line("status:failed queue:mail").good
    assert not Line("status:failed queue:mail type:mail.send").walks
    assert Line("type:mail.*").walks


def test_a_line_is_changed_by_one_word_at_a_time() -> None:
    line = Line("state:failed tag:vip")
    assert line.statuses == {Status.FAILED}
    assert line.put("status", None) == "tag:vip"
    assert line.put("status", "queued") == "tag:vip status:queued"
    assert line.put("sort", "created") == "state:failed tag:vip sort:created"
    assert Line("").put("status", "queued") == "status:queued"
    assert Line("").words == {}
    assert Line("sort:created").oldest_first


def test_a_line_that_is_too_long_is_told() -> None:
    for text in ("x" * 2001, "a " * 51):
        line = Line(text)
        assert not line.good
        assert line.trouble
        assert line.tokens == []


@pytest.mark.parametrize(
    ("n", "exact", "told"), [(0, True, "0"), (950, True, "950"), (12_345, True, "12.3k"), (100_000, False, "100k+")]
)
def test_counts_are_capped(n: int, exact: bool, told: str) -> None:
    assert capped(Count(n, exact=exact)) == told


async def test_completion_knows_the_names_that_there_are(app: Windlass) -> None:
    import httpx

    for n in range(3):
        await app.enqueue("mail.send", {"to": "x"}, user=f"u{n}", tags=("vip", "<b>"), queue="a b")
    await app.enqueue("mail.send", {"to": "x"}, user="other", tags=("secret-tag",))
    everybody = await app.keys.create("a test", owner="*", scopes=["read"])
    one = await app.keys.create("a test", owner="u1", scopes=["read"])

    async def told(key: str, q: str) -> str:
        transport = httpx.ASGITransport(web)
        headers = {"Authorization": f"Bearer {key}", "X-Windlass-Regions": "shared"}
        async with httpx.AsyncClient(transport=transport, base_url="http://windlass", headers=headers) as client:
            return (await client.get("/dashboard/search", params={"q": q})).text

    web = app.asgi()
    assert 'data-text="status:failed"' in await told(everybody.secret, "status:f")
    assert 'data-text="queue:&#34;a b&#34;"' in await told(everybody.secret, "queue:a")
    assert 'data-text="tag:secret-tag"' in await told(everybody.secret, "tag:")
    assert 'data-text="type:mail.send"' in await told(everybody.secret, "type:m")
    assert 'data-start="14" data-end="17"' in await told(everybody.secret, "status:failed use")
    assert "<b>" not in await told(everybody.secret, "tag:")
    assert "did you mean status" in await told(everybody.secret, "statsu:x queue:a")
    # One user's key is told of that user's names alone.
    own = await told(one.secret, "tag:") + await told(one.secret, "user:")
    assert "secret-tag" not in own
    assert "u2" not in own
    assert "user:u1" in own
