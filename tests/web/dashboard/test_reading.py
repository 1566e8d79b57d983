"""What pages ask a store for, beside however many jobs: no whole counts, no searches counted on and on."""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.web.conftest import Ask
from windlass import Windlass
from windlass.client.counting import Kept
from windlass.core.status import FINISHED, Status
from windlass.web.dashboard.pages.jobs import counting
from windlass.web.dashboard.visit import OWN, REGIONS

PAGES = "http://windlass/dashboard"
SEEN_BY_ALL = ("*", ("read", "operate"))


class Asked:
    """The views of a store, and what they are asked."""

    def __init__(self, views: Any) -> None:
        self.views, self.of = views, Counter[str]()
        self.counted: list[frozenset[Status]] = []
        self.caps: list[int] = []

    def __getattr__(self, name: str) -> Any:
        self.of[name] += 1
        return getattr(self.views, name)

    async def recount(self, statuses: frozenset[Status], *most: int) -> Any:
        self.counted.append(statuses)
        return await self.views.recount(statuses, *most)

    async def count(self, filter_: Any, *most: int) -> Any:
        if filter_.user_id is not None:
            self.caps += most or [100_000]
        return await self.views.count(filter_, *most)


@pytest.fixture
async def asked(app: Windlass) -> Asked:
    for number in range(6):
        await app.enqueue("mail.send", {"to": f"{number}"}, user="ann")
    found = app.store.views = Asked(app.store.views)  # type: ignore[misc]  # the edge of the store
    return found


@pytest.mark.parametrize("path", ["/", "/jobs"])
async def test_who_has_done_something_does_not_have_all_that_ended_counted(
    app: Windlass, ask: Ask, asked: Asked, path: str
) -> None:
    async with ask(*SEEN_BY_ALL) as client:
        await app.stats.read(max_age=0)
        kept = Kept.of((await asked.figures(timedelta(0))).kept)
        assert kept is not None
        # As of a million: it took half a second.
        slow = replace(kept, finished=replace(kept.finished, took=timedelta(seconds=0.5)))
        await asked.keep(slow.text())
        asked.counted.clear()
        answer = await client.get(f"{PAGES}{path}", headers={REGIONS: OWN})
        assert answer.status_code == 200
        assert FINISHED not in asked.counted


async def test_a_search_is_counted_up_to_a_bound(ask: Ask, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST", 4)
    monkeypatch.setattr(counting, "EACH", 2)
    async with ask(*SEEN_BY_ALL) as client:
        text = (await client.get(f"{PAGES}/jobs?q=user:ann", headers={REGIONS: OWN})).text
    assert set(asked.caps) == {4, 2}
    assert 'data-total="4+"' in text
    assert "<b>2+</b>" in text
    assert "<b>0+</b>" not in text, "of what was not met nothing is said"


async def test_the_figures_of_one_user_are_one_read(ask: Ask, asked: Asked) -> None:
    async with ask("ann", ("read",)) as client:
        assert (await client.get(f"{PAGES}/")).status_code == 200
    assert (asked.of["ran"], asked.of["find"]) == (1, 1), "what ran of theirs, and those that failed"


async def test_every_link_leads_somewhere(app: Windlass, ask: Ask) -> None:
    for queue in ("mail", "a/b"):
        await app.enqueue("mail.send", {"to": "x"}, queue=queue, user="ann")
    await app.enqueue("fail")
    await app.worker(max_jobs=2).run()
    await app.enqueue("mail.send", {"to": "y"}, delay=3600)
    async with ask("*", ("admin",)) as client:
        todo, seen, lost = ["/dashboard/"], set[str](), dict[str, str]()
        while todo:
            address = todo.pop()
            page = await client.get(f"http://windlass{address}")
            if page.status_code != 200:
                lost[address] = str(page.status_code)
            for href in re.findall(r'href="(/dashboard/[^"#]*)', page.text):
                # Of one kind of address one is looked at: lists link to themselves in other orders.
                link = html.unescape(href)
                kind = re.sub(r"[0-9a-f-]{12,}", "ID", link.partition("?")[0])
                if kind not in seen and "/assets/" not in link:
                    seen.add(kind)
                    todo.append(link)
    assert lost == {}
    assert {"/dashboard/jobs", "/dashboard/jobs/ID", "/dashboard/queues/a%252Fb", "/dashboard/health"} <= seen
