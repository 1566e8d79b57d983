"""`windlass top`, driven as somebody at a terminal would, over real stores with a real worker."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from tests.contract.places import Place, RedisPlace, open_place
from tests.support.apps import ms, until_status, working
from tests.support.counting import Calls
from tests.support.until import until
from windlass import Ctx, JobNotFound, Reject, Status, Windlass
from windlass.chaos.proxy import Proxy
from windlass.cli.desk import Desk
from windlass.cli.output import Screen as Output
from windlass.cli.top.live import Live
from windlass.cli.top.reading import Reader, View, Wanted
from windlass.stores.addresses import store_at

HOSTILE = "[bold red]own[/]\x1b]0;owned\x07\x1b[2J\u202egnp"
SMALL, WIDE = (80, 24), (180, 50)


def declare(app: Windlass) -> None:
    @app.job(name="steady", queue="slow")
    async def steady(ctx: Ctx) -> None:
        ctx.progress(30, 120, f"row 30 {HOSTILE}")
        await asyncio.Event().wait()

    @app.job(name="quick", queue="mail")
    async def quick(n: int) -> int:
        return n

    @app.job(name="bad", queue="mail", retry=1)
    async def bad(text: str) -> None:
        raise Reject(text)


@dataclass
class Screen:
    """What somebody sees, and their keys."""

    view: Live
    pilot: Pilot[int]
    app: Windlass

    @property
    def text(self) -> str:
        """Every line of the screen, as the terminal is sent it."""
        # Textual has no public way to the lines of a whole screen.
        lines = self.view.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
        return "\n".join("".join(part.text for part in line) for line in lines)

    async def shows(self, *words: str) -> None:
        """Wait until all of these can be read."""

        async def there() -> bool:
            await self.pilot.pause()
            return all(word in self.text for word in words)

        try:
            await until(there, f"{words} to be shown")
        except AssertionError:
            raise AssertionError(f"{words} in:\n{self.text}") from None

    async def hides(self, word: str) -> None:
        """Wait until this cannot be read any more."""

        async def gone() -> bool:
            await self.pilot.pause()
            return word not in self.text

        await until(gone, f"{word!r} to be gone")

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)


@asynccontextmanager
async def looking(app: Windlass, size: tuple[int, int] = SMALL, every: float = 0.2) -> AsyncGenerator[Screen]:
    view = Live(Desk(Output(), app, actor="ada"), every, "sqlite:///here.db")
    async with view.run_test(size=size) as pilot:
        screen = Screen(view, pilot, app)
        await screen.shows("ok/s", "QUEUE")
        yield screen
    assert view.broken is None


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[Windlass]:
    made = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=OFF")
    declare(made)
    async with made:
        yield made
    made.close()


@pytest.mark.timeout(60)
async def test_on_every_store_it_shows_what_is_there_and_keys_do_what_they_say(place: Place) -> None:
    app = Windlass(store=place.store())
    declare(app)
    async with app, working(app), looking(app, WIDE) as screen:
        running = await app.enqueue("steady")
        done = [await app.enqueue("quick", {"n": n}) for n in range(3)]
        failed = await app.enqueue("bad", {"text": "order 7 is gone"})
        await screen.shows("slow", "mail", "working", "25%", "steady", "3 Running 1", "4 Failures 1")
        await screen.press("4")
        await screen.shows("order 7 is gone", "FINGERPRINT")
        await screen.press("5")
        await screen.shows(done[0].id, failed.id, "succeeded", "failed")
        await screen.press("3", "enter")
        await screen.shows("It is running", "TIMELINE", "claimed", "30 of 120", running.id)
        await screen.press("C")
        await screen.shows("Cancel this job?", "its worker is asked to stop it")
        await screen.press("y")
        await screen.shows("CANCELLED")
        assert (await app.jobs.get(running.id)).status is Status.CANCELLED
        await screen.press("r")
        await until_status(running, Status.PROCESSING)
        await screen.press("escape", "1")
        await screen.shows("RUN/SLOTS")
        await app.jobs.cancel(running.id)
    app.close()


async def test_a_queue_is_paused_and_goes_on_after_a_question(app: Windlass) -> None:
    await app.enqueue("quick", {"n": 1})
    async with looking(app) as screen:
        await screen.shows("mail", "open")
        await screen.press("p")
        await screen.shows("Pause queue mail?", "1 waiting, 0 running")
        await screen.press("enter")  # no is where one begins
        await screen.hides("Pause queue")
        assert [one.paused_at for one in await app.queues.list()] == [None]
        await screen.press("p", "y")
        await screen.shows("queue mail is paused", "paused  ")
        [queue] = await app.queues.list()
        assert queue.paused_at is not None
        await screen.press("p")
        await screen.shows("Resume queue mail?")
        await screen.press("right", "enter")
        await screen.shows("queue mail goes on")
        assert [one.paused_at for one in await app.queues.list()] == [None]


async def test_jobs_are_filtered_deleted_and_what_is_refused_is_told(app: Windlass) -> None:
    kept, gone = await app.enqueue("quick", {"n": 1}), await app.enqueue("bad", {"text": "x"}, delay=600)
    async with looking(app, WIDE) as screen:
        await screen.press("slash")
        await screen.press(*"type:bad")
        await screen.press("enter")
        await screen.shows(gone.id, "/ type:bad", "5 Jobs 1")
        assert kept.id not in screen.text
        await screen.press("D")
        await screen.shows("Delete this job?", "cannot be undone", gone.id)
        await screen.press("n")
        await screen.hides("Delete this job?")
        assert await app.jobs.get(gone.id)
        await screen.press("D", "y")
        await screen.shows(f"job {gone.id} is deleted", "no jobs match")
        with pytest.raises(JobNotFound):
            await app.jobs.get(gone.id)
        await screen.press("escape")
        await screen.shows(kept.id, "5 Jobs 1")
        await screen.press("r")
        await screen.shows("it cannot be moved to queued")
        await app.jobs.cancel(kept.id)
        await screen.shows("cancelled")
        await screen.press("C")
        await screen.shows("it cannot be moved to cancelled")
        await screen.press("slash", *"colour:red", "enter")
        await screen.shows("colour")
        await screen.press("escape", "s")
        await screen.shows("RAN ▾")


async def test_a_kind_of_failure_is_replayed_after_its_count_was_shown(app: Windlass) -> None:
    for n in range(3):
        await app.enqueue("bad", {"text": f"order {n} is gone"})
    await app.enqueue("bad", {"text": "closed"})
    await app.worker(drain=True, poll=ms(20)).run()
    async with looking(app) as screen:
        await screen.press("4")
        await screen.shows("order 2 is gone", "closed")
        await screen.press("R")
        await screen.shows("Replay 3 failed jobs?", "as a new job")
        await screen.press("y")
        await screen.shows("3 jobs replayed")
        assert (await app.jobs.count(status="queued")).n == 3
        await screen.press("R", "y")
        await screen.shows("0 jobs replayed; 3 skipped")
        await screen.press("enter")
        await screen.shows("fingerprint:", "5 Jobs 3")
    trail = [(one.actor, one.action) for one in (await app.audit.list()).entries]
    assert trail == [("ada", "bulk.replay.ended")] * 2


async def test_what_jobs_bring_along_is_neither_markup_nor_control(app: Windlass) -> None:
    """Names of types and queues cannot hold such characters; messages, notes and payloads can."""
    failed = await app.enqueue("bad", {"text": HOSTILE})
    worker = app.worker(drain=True)
    await worker.run()
    running = await app.enqueue("steady")
    async with working(app), looking(app, WIDE) as screen:
        sent: list[str] = []
        for keys in ("1", "3", "4", "5"):
            await screen.press(keys)
            await screen.shows("[bold red]own[/]" if keys != "1" else "steady")
            sent.append(screen.text)
        await screen.press("enter")
        await screen.shows("TIMELINE", running.id)
        sent.append(screen.text)
        await screen.press("escape", "slash", *"status:failed", "enter", "enter")
        await screen.shows("TIMELINE", failed.id, "[bold red]own[/]")
        await screen.press("D")
        await screen.shows("Delete this job?")
        sent.append(screen.text)
        assert not [one for one in "".join(sent) if one in "\x1b\x07\u202e\x9b"]
        await app.jobs.cancel(running.id)


@pytest.mark.timeout(60)
async def test_it_tells_how_old_it_is_while_the_store_is_away_and_goes_on_by_itself(tmp_path: Path) -> None:
    async with open_place("redis", tmp_path) as place:
        assert isinstance(place, RedisPlace)
        url = urlsplit(place.url)
        assert url.hostname is not None
        assert url.port is not None
        with Proxy(url.hostname, url.port) as proxy:
            away = url._replace(netloc=f"127.0.0.1:{proxy.port}", query="timeout=1").geturl()
            app = Windlass(away, namespace=place.namespace)
            declare(app)
            async with app, looking(app) as screen:
                await app.enqueue("quick", {"n": 1})
                await screen.shows("mail", "live ·")
                proxy.refuse()
                await screen.shows("old ·", "figures are of", "mail")
                await screen.press("p", "y")
                await screen.hides("Pause queue")
                proxy.heal()
                await screen.shows("live ·")
                await screen.hides("figures are of")
                await app.enqueue("steady")
                await screen.shows("slow")
            app.close()


async def test_a_look_costs_the_same_however_many_rows_and_lines_there_are(tmp_path: Path) -> None:
    calls = Calls()
    app = Windlass(store=calls.on(store_at(f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=OFF")))
    declare(app)
    async with app:

        async def cost(view: View) -> Counter[str]:
            before = calls.now()
            await Reader(Windlass(store=app.client.store)).look(Wanted(view))
            made = calls.since(before)
            assert made.total() <= 20  # with what counting all jobs takes when it is due
            return Counter({name: n for name, n in made.items() if name.endswith((".find", ".list", ".count"))})

        few = [await cost(view) for view in View]
        await app.enqueue_many([("quick", {"n": n}) for n in range(300)])
        many = [await cost(view) for view in View]
    app.close()
    assert few == many


async def test_held_it_asks_nothing_and_shows_what_it_showed(tmp_path: Path) -> None:
    calls = Calls()
    app = Windlass(store=calls.on(store_at(f"sqlite:///{tmp_path / 'jobs.db'}?synchronous=OFF")))
    declare(app)
    async with app, looking(app) as screen:
        await screen.press("full_stop")
        await screen.shows("held ·")
        await until(lambda: not screen.view.looking, "the look under way to end")
        before = calls.now()
        await app.enqueue("quick", {"n": 1})
        await screen.press("2", "3", "1")
        await screen.pilot.pause(0.2)
        assert set(calls.since(before)) == {"jobs.insert"}
        assert "mail" not in screen.text
        await screen.press("full_stop")
        await screen.shows("mail", "live ·")
    app.close()


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (120, 40), (200, 50)])
async def test_every_line_fits_the_terminal(app: Windlass, size: tuple[int, int]) -> None:
    for name in ("mail", "a-queue-with-a-name-that-is-rather-long-" * 2, "third", "fourth", "fifth", "sixth"):
        await app.enqueue("quick", {"n": 1}, queue=name)
    await app.enqueue("steady")
    async with working(app, queues={"slow": 2}), looking(app, size) as screen:
        await screen.shows("QUEUE", "WORKER", "TYPE", "steady", "q quit", "? keys")
        lines = screen.text.split("\n")
        assert len(lines) == size[1]
        assert {cell_len(one) for one in lines} == {size[0]}
        for key in "45":
            await screen.press(key)
            await screen.shows("q quit", "? keys")
        await screen.press("question_mark")
        await screen.shows("Uppercase is dangerous")
        assert {cell_len(one) for one in screen.text.split("\n")} == {size[0]}
        await screen.press("escape", "q")
    assert screen.view.return_value == 0


async def test_many_queues_leave_room_for_what_runs_in_a_small_terminal(app: Windlass) -> None:
    for n in range(12):
        await app.enqueue("quick", {"n": n}, queue=f"q{n:02}")
    await app.enqueue("steady")
    async with working(app, queues={"slow": 2}), looking(app) as screen:
        await screen.shows("q00", "1/2", "25%")


async def test_where_there_is_room_queues_and_workers_stand_side_by_side(app: Windlass) -> None:
    await app.enqueue("steady")
    for size in (WIDE, (WIDE[0], 20)):
        async with working(app), looking(app, size) as screen:
            await screen.shows("QUEUE", "WORKER")
            [heads] = [line for line in screen.text.split("\n") if "QUEUE" in line and "STATE" in line]
            assert "WORKER" in heads


async def test_the_chosen_row_has_one_colour_and_others_have_their_own(app: Windlass) -> None:
    for text in ("x", "y"):
        await app.enqueue("bad", {"text": text})
    await app.worker(drain=True).run()

    def colours(place: int) -> int:
        strips = screen.view.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]  # as `text` does
        rows = [line for line in strips if "Reject: " in line.text]
        return len({str(part.style.color) for part in rows[place] if part.style is not None and part.text.strip()})

    async with looking(app) as screen:
        await screen.press("4")
        await screen.shows("Reject: x", "Reject: y")
        await until(lambda: (colours(0), colours(1)) == (1, 2), "the first one to be chosen")
        await screen.press("down")
        await until(lambda: (colours(0), colours(1)) == (2, 1), "the second one to be chosen")


async def test_the_chosen_row_stays_chosen_while_others_come_and_go(app: Windlass) -> None:
    await app.enqueue("quick", {"n": 1}, queue="mm")
    async with looking(app) as screen:
        await screen.shows("mm")
        await app.enqueue("quick", {"n": 1}, queue="aa")
        await app.enqueue("quick", {"n": 1}, queue="zz")
        await screen.shows("aa", "zz")
        assert screen.view.panel(View.QUEUES).key == "mm"
        await screen.press("down")
        assert screen.view.panel(View.QUEUES).key == "zz"
        await screen.press("tab", "tab", "shift+tab", "shift+tab", "up", "enter")
        await screen.shows('/ queue:"mm"', "5 Jobs 1")
