"""The live view: looks again and again, shows what it saw, and does what keys ask for."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.widgets import Input, OptionList, Static

from windlass.cli.output import FAILURE, INTERRUPTED, OK
from windlass.cli.top import orders
from windlass.cli.top.columns import Cell, Tone
from windlass.cli.top.dialogs import Asking, Keys
from windlass.cli.top.heading import sparks, tabs, tiles, title
from windlass.cli.top.one_job import JobScreen
from windlass.cli.top.reading import Reader, View, Wanted, dead
from windlass.cli.top.rows import Panel, content
from windlass.cli.top.style import CSS
from windlass.cli.top.tables import ORDERS, table
from windlass.cli.words import span
from windlass.client.searching import filter_of
from windlass.core.errors import JobNotFound, WindlassError
from windlass.core.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from textual.app import ComposeResult

    from windlass.cli.desk import Desk
    from windlass.cli.top.orders import Order
    from windlass.cli.top.picture import Picture
    from windlass.client.searching import Search
    from windlass.core.job import Job

WIDE = 160
"""columns from which queues and workers stand side by side"""
HIGH = 22
"""lines from which there is one to spare between two lists"""
TELLING = 6.0
"""seconds that words about an order stay"""
_TICK = 0.25
_LATE = 3.0
"""seconds beyond the interval until old figures are spoken of"""
LINES = ("title", "names", "figures", "sparks", "tabs", "banner", "keys")
"""the lines above the lists, and that below them"""
LIVE = (View.QUEUES, View.WORKERS, View.RUNNING)
"""views that stand on one page"""


async def watch(desk: Desk, every: float) -> int:
    """Show the live view until it is left; the exit code."""
    if not desk.screen.color:
        os.environ["NO_COLOR"] = "1"  # which is how textual is told of --no-color
    view = Live(desk, every)
    loop = asyncio.get_running_loop()
    leave: dict[int, int] = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: OK, signal.SIGHUP: OK}
    for number, code in leave.items():
        loop.add_signal_handler(number, view.exit, code)
    try:
        await view.run_async()
    finally:
        for number in leave:
            loop.remove_signal_handler(number)
    if view.broken is not None:
        raise view.broken
    return FAILURE if view.return_value is None else view.return_value


class Live(App[int]):
    """The screen."""

    CSS = CSS
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012  # typed by textual
    VERTICAL_BREAKPOINTS = [(0, "-low"), (HIGH, "-high")]  # noqa: RUF012  # the same
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "leave(130)", "quit", priority=True),
        Binding("q", "leave(0)", "quit"),
        Binding("1", "view(1)", "queues"),
        Binding("2", "view(2)", "workers"),
        Binding("3", "view(3)", "running"),
        Binding("4", "view(4)", "failures"),
        Binding("5", "view(5)", "jobs"),
        Binding("tab", "next_view(1)", "next", priority=True),
        Binding("shift+tab", "next_view(-1)", "previous", priority=True),
        Binding("slash", "filter", "filter"),
        Binding("escape", "unfilter", "back"),
        Binding("s", "sort", "sort"),
        Binding("full_stop", "hold", "hold"),
        Binding("question_mark", "keys", "keys"),
        Binding("p", "pause", "pause"),
        Binding("r", "retry", "retry"),
        Binding("C", "cancel", "cancel"),
        Binding("D", "delete", "delete"),
        Binding("R", "replay", "replay"),
    ]

    def __init__(self, desk: Desk, every: float, place: str | None = None) -> None:
        super().__init__()
        self._desk, self._every, self._place = desk, every, place or desk.place
        self._reader = Reader(desk.app)
        self.wanted = Wanted()
        self.shown: Picture | None = None
        self.trouble: str | None = None
        """why the last look failed"""
        self.held = self.looking = False
        self.broken: Exception | None = None
        """an unexpected error, raised after the screen is left"""
        self._filter = ""
        self._search: Search | None = None
        self._seen_at = self._whole_at = time.monotonic()
        self._told_at = 0.0
        self._orders: Counter[View] = Counter()
        self._woken = asyncio.Event()
        # Held here, and not looked for by their names: a look may come back while the screen is being taken down.
        self._lines = {name: Static("", id=name, markup=False) for name in LINES}
        self._panels = {view: Panel(view.name.lower()) for view in View}
        self._body, self._upper = Vertical(id="body"), Container(id="upper")
        self._asked = Input(id="filter", placeholder="status:failed queue:mail ran>5s", compact=True)

    def compose(self) -> ComposeResult:
        """The heading, the lists, the keys."""
        for name in LINES[:-1]:
            yield self._lines[name]
        with self._body:
            with self._upper:
                yield self._panels[View.QUEUES]
                yield self._panels[View.WORKERS]
            for view in (View.RUNNING, View.FAILURES, View.JOBS):
                yield self._panels[view]
        yield self._asked
        yield Static("", classes="tell", markup=False)
        yield self._lines["keys"]

    def on_mount(self) -> None:
        """Begin to look."""
        self.theme = "ansi-dark"
        self._go(View.QUEUES)
        self.run_worker(self._look_again_and_again(), name="look")
        self.set_interval(_TICK, self._tick)

    # Looking.

    async def _look_again_and_again(self) -> None:
        try:
            while True:
                self._woken.clear()
                began = time.monotonic()
                if not self.held:
                    self.looking = True
                    await self._look()
                    self.looking = False
                took = time.monotonic() - began
                # A store that answers slowly has as long for itself as it took.
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), max(self._every - took, took))
        except Exception as error:  # noqa: BLE001  # whatever it is, the terminal is put in order before it is told
            self.broken = error
            self.exit(FAILURE)

    async def _look(self) -> None:
        """One look at what is on the screen, and nothing else."""
        screen, wanted = self.screen, self.wanted
        try:
            if isinstance(screen, JobScreen):
                await screen.look(self._desk.app, self._now())
            else:
                seen = await self._reader.look(wanted)
                if wanted == self.wanted:
                    self.shown, self._whole_at = seen, time.monotonic()
                    self._draw()
        except JobNotFound as error:
            if isinstance(screen, JobScreen):
                _ = screen.dismiss(None)
            self._tell(str(error), Tone.BAD)
        except WindlassError as error:
            self.trouble = redact(str(error))
            return
        self.trouble, self._seen_at = None, time.monotonic()
        self._tick()

    def wake(self) -> None:
        """Look at once."""
        self._woken.set()

    def _now(self) -> datetime:
        """The store's clock, as far as it is known from the last look at all."""
        if self.shown is None:
            return datetime.now(UTC)
        return self.shown.at + timedelta(seconds=time.monotonic() - self._whole_at)

    # Drawing.

    def panel(self, view: View) -> Panel:
        """The list of a view."""
        return self._panels[view]

    def _draw(self) -> None:
        shown = self.shown
        if shown is None:
            return
        with self.batch_update():
            names, figures = tiles(shown, self.size.width)
            self._update("names", names)
            self._update("figures", figures)
            self._update("sparks", sparks(shown, self.size.width))
            self._update("keys", hints(self.wanted.view, self.size.width))
            for view in self._views():
                self.panel(view).show(table(view, shown, self._orders[view]))
            self._arrange()
            self._tick()

    def _update(self, id: str, cells: list[Cell]) -> None:
        self._lines[id].update(content(cells))

    def _tick(self) -> None:
        """What changes without another look: how old all is."""
        age = time.monotonic() - self._seen_at
        late = self.trouble is not None or (not self.held and age > self._every + _LATE)
        if self.held:
            state = Cell(f"held · {span(round(age))} old", Tone.WARN)
        elif self.shown is None:
            state = Cell("asking …", Tone.MUTED)
        else:
            state = Cell(f"{'old' if late else 'live'} · {age:.0f} s", Tone.BAD if late else Tone.GOOD)
        self._update("title", title(self._place, state, self.size.width))
        self._update("tabs", tabs(self.wanted.view, self.shown, self._filter, self.size.width))
        self._lines["banner"].set_class(late, "-up")
        if late:
            since = "" if self.shown is None else f"figures are of {self.shown.at:%H:%M:%S} UTC; "
            why = (self.trouble or "the store does not answer").removesuffix(": try again")
            self._update("banner", [Cell.of(f"{why}; {since}trying again …", Tone.BAD)])
        if time.monotonic() - self._told_at > TELLING:
            for one in self._told():
                one.remove_class("-up")

    def _views(self) -> tuple[View, ...]:
        return LIVE if self.wanted.view in LIVE else (self.wanted.view,)

    def _arrange(self) -> None:
        """Give the lists of this page the room there is."""
        views = self._views()
        for view in View:
            self.panel(view).display = view in views
        self._upper.display = View.QUEUES in views
        room = self._body.size.height or self.size.height - 8
        if views != LIVE:
            self.panel(views[0]).styles.height = "1fr"
            return
        above = int(self.size.height >= HIGH)
        wants = [self.panel(view).wants + above for view in LIVE]
        least = 2 + above  # a head and one row
        if self.size.width >= WIDE:
            both = max(wants[:2])
            first, second = shares(room, [both, wants[2]], max(int(self.wanted.view) - 2, 0), least)
            heights = [first, first, second]
        else:
            heights = shares(room, wants, int(self.wanted.view) - 1, least)
        for view, height in zip(LIVE, heights, strict=True):
            self.panel(view).styles.height = max(height - above, 2)

    def on_resize(self) -> None:
        """Everything anew for the new size."""
        self.call_after_refresh(self._draw)

    def _tell(self, text: str, tone: Tone = Tone.GOOD) -> None:
        for one in self._told():
            one.update(content([Cell.of(redact(text), tone)]))
            one.add_class("-up")
        self._told_at = time.monotonic()

    def _told(self) -> list[Static]:
        """Where words about an order stand, on each screen that has a place for them."""
        screens = self.screen_stack if self.is_running else []
        return [one for screen in screens for one in screen.query(".tell").results(Static)]

    # Keys.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """On another screen, and in the line of the filter, keys are others'."""
        del parameters
        if action == "next_view":
            return len(self.screen_stack) == 1 and not isinstance(self.focused, Input)
        return True

    def action_leave(self, code: int) -> None:
        """Quit."""
        self.exit(code)

    def action_view(self, number: int) -> None:
        """Go to a view."""
        self._go(View(number))

    def action_next_view(self, step: int) -> None:
        """Go to the next view, or the one before."""
        self._go(View((self.wanted.view - 1 + step) % len(View) + 1))

    def _go(self, view: View) -> None:
        wanted = Wanted(view, self._search)
        if wanted != self.wanted:
            self.wanted = wanted
            self.wake()
        self._draw()
        self._arrange()
        self.panel(view).rows.focus()
        self._update("keys", hints(view, self.size.width))

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A list that is clicked on is the view that one is at."""
        for view in self._views():
            if self.panel(view).rows is event.widget and view is not self.wanted.view:
                self._go(view)

    def action_filter(self) -> None:
        """Ask for a filter; of failures in their view, else of jobs."""
        line = self._asked
        line.value = self._filter
        line.add_class("-up")
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Filter by what was written; a mistake is told, and can be mended."""
        try:
            search = searched(event.value)
            filter_of(search)
        except WindlassError as error:
            self._tell(str(error), Tone.BAD)
            return
        self._narrow(event.value.strip(), search)

    def _narrow(self, text: str, search: Search) -> None:
        self._filter, self._search = text, search or None
        self._asked.remove_class("-up")
        self._go(self.wanted.view if self.wanted.view is View.FAILURES else View.JOBS)

    def action_unfilter(self) -> None:
        """Out of the line of the filter; else away with the filter."""
        line = self._asked
        if line.has_class("-up"):
            line.remove_class("-up")
            self._go(self.wanted.view)
        elif self._filter:
            self._filter, self._search = "", None
            self._go(self.wanted.view)

    def action_sort(self) -> None:
        """By the next column that this list can be sorted by."""
        self._orders[self.wanted.view] += 1
        chosen = ORDERS[self.wanted.view]
        self._draw()
        self._tell(f"sorted by {chosen[self._orders[self.wanted.view] % len(chosen)].head}", Tone.MUTED)

    def action_hold(self) -> None:
        """Hold everything as it is, or let it go on."""
        self.held = not self.held
        self._tick()
        self.wake()

    def action_keys(self) -> None:
        """Show which key does what."""
        _ = self.push_screen(Keys())

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open what is chosen."""
        event.stop()
        view, key = self.wanted.view, self.panel(self.wanted.view).key
        if key is None:
            return
        match view:
            case View.RUNNING | View.JOBS:
                _ = self.push_screen(JobScreen(key), lambda _: self.wake())
                self.wake()
            case View.QUEUES:
                self._open(f"queue:{_quoted(key)}")
            case View.WORKERS:
                self._open(f"worker:{_quoted(key)}")
            case View.FAILURES:
                self._open(f"fingerprint:{key}")

    def _open(self, text: str) -> None:
        self.wanted = Wanted(View.JOBS)
        self._narrow(text, searched(text))

    # Orders.

    def action_pause(self) -> None:
        """Pause or resume the chosen queue."""
        name = self.panel(View.QUEUES).key
        queues = () if self.shown is None else self.shown.queues
        for one in queues:
            if self.wanted.view is View.QUEUES and one.info.name == name:
                self._ask(orders.pausing(self._desk, one))
                return
        self._tell("p pauses a queue: choose one with 1", Tone.MUTED)

    def action_retry(self) -> None:
        """Retry the chosen job."""
        if self.wanted.view is View.FAILURES and not isinstance(self.screen, JobScreen):
            self._tell("R replays a kind of failure; Enter shows its jobs, which r retries", Tone.MUTED)
            return
        job = self._job()
        if job is not None:
            self._carry_out(lambda: orders.retry(self._desk, job))

    def action_cancel(self) -> None:
        """Cancel the chosen job."""
        self._ask_of_job(orders.cancelling)

    def action_delete(self) -> None:
        """Delete the chosen job."""
        self._ask_of_job(orders.deleting)

    def action_replay(self) -> None:
        """Replay the chosen kind of failure."""
        key = self.panel(View.FAILURES).key if self.wanted.view is View.FAILURES else None
        groups = () if self.shown is None or self.shown.failures is None else self.shown.failures.groups
        group = next((one for one in groups if one.fingerprint == key), None)
        if group is None:
            self._tell("R replays a kind of failure: choose one with 4", Tone.MUTED)
            return

        async def prepare() -> str:
            self._ask(await orders.replaying(self._desk, group, dead(self._search)))
            return ""

        self._carry_out(prepare)

    def _job(self) -> Job | None:
        """The job on the screen, or the chosen one of a list of jobs."""
        if isinstance(self.screen, JobScreen):
            return None if self.screen.seen is None else self.screen.seen.job
        shown, view = self.shown, self.wanted.view
        key = self.panel(view).key
        jobs: list[Job] = []
        if shown is not None and view is View.RUNNING:
            jobs = [one.job for one in shown.running]
        elif shown is not None and view is View.JOBS and shown.jobs is not None:
            jobs = list(shown.jobs.jobs)
        found = next((one for one in jobs if one.id == key), None)
        if found is None:
            self._tell("no job is chosen: 3 and 5 list some", Tone.MUTED)
        return found

    def _ask_of_job(self, order: Callable[[Desk, Job], Order]) -> None:
        job = self._job()
        if job is None:
            return
        try:
            self._ask(order(self._desk, job))
        except WindlassError as error:
            self._tell(str(error), Tone.BAD)

    def _ask(self, order: Order) -> None:
        _ = self.push_screen(Asking(order), lambda yes: self._carry_out(order.do) if yes else None)

    def _carry_out(self, do: Callable[[], Awaitable[str]]) -> None:
        self.run_worker(self._tried(do), name="order")

    async def _tried(self, do: Callable[[], Awaitable[str]]) -> None:
        try:
            told = await do()
        except WindlassError as error:
            self._tell(str(error), Tone.BAD)
            return
        if told:
            self._tell(told)
            self._reader.forget()
            self.wake()


def searched(text: str) -> Search:
    """The search that a line means; none where nothing was written."""
    return {"where": text.strip()} if text.strip() else {}


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def hints(view: View, width: int) -> list[Cell]:
    """The keys that one wants in a view, as many as there is room for; how to see all of them comes first."""
    own = {
        View.QUEUES: ("p pause", "Enter jobs"),
        View.WORKERS: ("Enter jobs",),
        View.RUNNING: ("Enter open", "C cancel"),
        View.FAILURES: ("R replay", "Enter jobs"),
        View.JOBS: ("Enter open", "r retry", "C cancel", "D delete"),
    }
    made: list[Cell] = []
    left = width
    for hint in ("? keys", "q quit", *own[view], "Tab view", "/ filter", "s sort", ". hold"):
        if len(hint) > left:
            break
        key, _, does = hint.partition(" ")
        made += [Cell(key, Tone.STRONG), Cell(f" {does}   ", Tone.MUTED)]
        left -= len(hint) + 3
    return made


def shares(room: int, wants: Sequence[int], first: int, least: int) -> list[int]:
    """So many lines for each: as many as it wants while there are enough; the first one comes first, none goes short.

    What is left over goes to the last.
    """
    given = [min(want, max(room // (2 * len(wants)), least)) for want in wants]
    left = room - sum(given)
    for place in [first, *(at for at in range(len(wants)) if at != first)]:
        more = min(max(left, 0), wants[place] - given[place])
        given[place] += more
        left -= more
    given[-1] += max(left, 0)
    return given
