"""Workers in the dashboard: who is there and how they are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.async_api import expect

from tests.web.dashboard.browsing import IN_BROWSER, Site
from windlass import Windlass
from windlass.core.job import Progress
from windlass.stores.contract import Lease, Report, Want, WorkerInfo

pytestmark = IN_BROWSER
HOSTILE = "<img src=x onerror=alert(1)>'\"&{{7*7}}"


def described(id_: str, **more: object) -> WorkerInfo:
    usual = {
        "host": id_.split("/", maxsplit=1)[0],
        "pid": 8812,
        "version": "0.2.0",
        "queues": ("mail",),
        "types": ("mail.send",),
        "slots": 8,
        "running": 1,
        "memory_mb": 212.4,
        "loop_lag_ms": 2.0,
    }
    return WorkerInfo(id=id_, **{**usual, **more})  # type: ignore[arg-type]  # as above


async def at_work(app: Windlass, *others: WorkerInfo) -> str:
    """A worker that runs a job, and others; gives the job's id."""
    handle = await app.enqueue("mail.send", {"to": "ann"})
    for one in (described("web-1/8812/aaaaaa"), *others):
        await app.store.workers.beat(one)
    [job] = await app.store.jobs.claim(
        Want(worker_id="web-1/8812/aaaaaa", n=1, lease=timedelta(minutes=5), types=frozenset(["mail.send"]))
    )
    await app.store.jobs.report([Report(Lease(job.id, job.lease_token), Progress(done=30, of=100))])
    return handle.id


async def test_what_each_runs_and_how_it_is(site_at: Site) -> None:
    job_id = await at_work(
        site_at.app,
        described("web-2/1/bbbbbb", stopping=True, running=0),
        described("web-3/2/cccccc", stuck=2, loop_lag_ms=900.0, running=0),
    )
    page = await (await site_at.look("operator")).go("/workers")
    card = page.locator(".worker", has_text="web-1/8812").first
    await expect(card).to_contain_text("alive")
    await expect(card).to_contain_text("1 of 8 slots")
    await expect(card).to_contain_text("212 MB")
    link = card.get_by_role("link", name="mail.send").first
    assert str(await link.get_attribute("href")).endswith(f"/dashboard/jobs/{job_id}")
    assert await card.get_by_label("done: 30 percent").count() == 1
    await card.locator("summary").click()
    await expect(card.get_by_role("link", name="mail", exact=True)).to_be_visible()
    await expect(page.locator(".worker", has_text="web-2")).to_contain_text("stopping")
    odd = page.locator(".worker", has_text="web-3")
    await expect(odd).to_contain_text("2\nthreads past the timeout")
    await expect(odd).to_contain_text("the event loop is blocked")
    # What is unfolded stays so while the page goes on.
    await site_at.app.store.workers.beat(described("web-1/8812/aaaaaa", memory_mb=300.0))
    await expect(card).to_contain_text("300 MB", timeout=15_000)
    await expect(card.get_by_role("link", name="mail", exact=True)).to_be_visible()


async def test_versions_that_differ_are_told(site: Site) -> None:
    await at_work(site.app, described("web-2/1/bbbbbb"), described("web-3/2/cccccc", version="0.1.9"))
    look = await site.look()
    page = await look.go("/workers")
    assert "0.2.0 (2), 0.1.9 (1)" in await look.text()
    await expect(page.locator(".worker", has_text="web-3")).to_contain_text("most run another")
    await expect(page.locator(".worker", has_text="web-2")).not_to_contain_text("most run another")


async def test_the_silent_are_told_and_can_be_forgotten(site: Site) -> None:
    await at_work(site.app)
    now = await site.app.store.now()
    await site.app.store.workers.beat(described("gone/1/dddddd"))
    await past(site.app, "gone/1/dddddd", now - timedelta(minutes=10))
    page = await (await site.look("operator")).go("/workers")
    card = page.locator(".worker", has_text="gone/8812")
    await expect(card).to_contain_text("silent")
    await expect(card).to_contain_text("Presumed dead")
    await page.get_by_role("button", name="Remove silent workers").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(card).to_have_count(0)
    assert [one.id for one in await site.app.workers.list()] == ["web-1/8812/aaaaaa"]


async def test_pages_are_for_everybody_and_names_are_text(site: Site) -> None:
    hostile = described(f"{HOSTILE}/1/eeeeee", queues=(HOSTILE,), types=(HOSTILE, "mail.send"), version=HOSTILE)
    await at_work(site.app, hostile)
    look = await site.look()
    page = await look.go("/workers")
    for one in await page.locator(".worker summary").all():
        await one.click()
    assert await look.axe() == []
    assert await page.locator("main img").count() == 0
    assert "<img src=x onerror=alert(1)>" in await look.text()
    for width in (320, 375, 768, 1440):
        await page.set_viewport_size({"width": width, "height": 700})
        assert await look.overflow() <= 0, f"wider than {width}"
        await look.shot(f"workers-{width}")


@pytest.mark.parametrize(("role", "status", "buttons"), [("reader", 200, 0), ("user", 403, 0)])
async def test_who_only_reads_is_shown_no_button(site: Site, role: str, status: int, buttons: int) -> None:
    await at_work(site.app)
    now = await site.app.store.now()
    await site.app.store.workers.beat(described("gone/1/dddddd"))
    await past(site.app, "gone/1/dddddd", now - timedelta(minutes=10))
    page = await (await site.look(role)).go("/")
    answer = await page.goto(f"{site.url}/workers")
    assert answer is not None
    assert answer.status == status
    assert await page.locator("[data-act]").count() == buttons
    told = await page.evaluate(
        "path => fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'})"
        ".then(a => a.status)",
        f"{site.prefix}/api/v1/workers/forget",
    )
    assert told == 403


async def test_where_there_is_none_it_is_said_what_to_do(site: Site) -> None:
    look = await site.look(script=False)
    await look.go("/workers")
    assert "windlass worker MODULE:APP" in await look.text()


async def past(app: Windlass, worker: str, at: object) -> None:
    """Have a worker's last word be so old, as a file may say."""
    import sqlite3
    from contextlib import closing
    from datetime import datetime

    assert isinstance(at, datetime)
    with closing(sqlite3.connect(app.url.removeprefix("sqlite:///").partition("?")[0])) as db, db:
        db.execute("UPDATE windlass_workers SET beat_at = ? WHERE id = ?", (int(at.timestamp() * 1000), worker))
