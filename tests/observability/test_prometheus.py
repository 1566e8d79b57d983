"""The metrics of one process: what is counted, what the store is asked, and both for any number of readers."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.parser import text_string_to_metric_families

from tests.observability.every_event import ALL
from tests.support.apps import app_at, working
from tests.support.counting import Calls
from tests.support.until import until
from windlass import Windlass
from windlass.core.errors import SettingsError, StoreUnavailable
from windlass.core.events import Event, Hub, JobClaimed, JobEnded, JobStarted
from windlass.observability.counting import Counting
from windlass.observability.figures import Figures
from windlass.observability.measures import JOBS_STARTED, Bounds, Kind, measured
from windlass.observability.prometheus import METRICS, Prometheus
from windlass.observability.tally import Series, Tally

ROOT = Path(__file__).parents[2]
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def scraped(metrics: Prometheus) -> Samples:
    return samples((await metrics.page()).body.decode())


def samples(text: str) -> Samples:
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, tuple(sorted(labels.items()))]


@pytest.fixture
def app(tmp_path: Path) -> Windlass:
    made = app_at(tmp_path / "jobs.db")

    @made.job(name="send", queue="mail")
    async def send() -> None: ...

    @made.job(name="fail", retry=1)
    async def fail() -> None:
        raise ValueError("no")

    return made


async def test_a_scrape_tells_what_has_happened_and_how_the_store_stands(app: Windlass) -> None:
    async with app:
        metrics = app.metrics()
        for _ in range(3):
            await app.enqueue("send")
        await app.enqueue("fail")
        await app.enqueue("nobody's", queue="nobody's")
        async with working(app, concurrency=7):
            await until(lambda: ended(metrics) == 4, "the jobs to end")
            await until(lambda: (metrics_value(metrics, "windlass_slots")) == 7, "the worker to tell of its slots")
            found = await scraped(metrics)
        assert value(found, "windlass_jobs_ended_total", type="send", queue="mail", outcome="succeeded") == 3
        assert value(found, "windlass_jobs_ended_total", type="fail", queue="default", outcome="failed") == 1
        assert value(found, "windlass_jobs_fenced_total", type="send", queue="mail") == 0
        assert value(found, "windlass_job_run_seconds_count", type="send", queue="mail") == 3
        assert value(found, "windlass_job_wait_seconds_bucket", type="send", queue="mail", le="+Inf") == 3
        assert value(found, "windlass_queue_jobs", queue="mail", status="succeeded") == 3
        assert value(found, "windlass_queue_jobs", queue="default", status="failed") == 1
        assert value(found, "windlass_queue_jobs", queue="other", status="queued") == 1
        assert value(found, "windlass_queue_oldest_waiting_seconds", queue="other") > 0
        assert value(found, "windlass_workers", presence="alive") == 1
        assert value(found, "windlass_notifier_healthy") == 1
        assert (value(found, "windlass_slots"), value(found, "windlass_store_up")) == (7, 1)
        assert "nobody's" not in str(found)
        assert metrics_value(metrics, "windlass_slots") == 0  # the worker has ended


def ended(metrics: Prometheus) -> float:
    return sum(v for (name, _), v in now(metrics).items() if name == "windlass_jobs_ended_total")


def metrics_value(metrics: Prometheus, name: str) -> float:
    return now(metrics).get((name, ()), -1)


def now(metrics: Prometheus) -> Samples:
    """Without asking the store."""
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in metrics.collect()
        for one in family.samples
    }


async def test_what_alerts_take_the_increase_of_is_there_before_it_happens(app: Windlass) -> None:
    """Of a series that begins with 1 Prometheus sees no increase: the first time would be no alert."""
    rules = (ROOT / "deploy" / "prometheus" / "windlass-alerts.yml").read_text()
    wanted = set(re.findall(r"(?:increase|rate)\((\w+)", rules))
    assert wanted >= {"windlass_jobs_rescued_total", "windlass_loop_blocked_seconds_count"}
    async with app:
        found = await scraped(app.metrics())
        assert wanted <= {name for (name, _), n in found.items() if n == 0}
        for type_, queue in (("send", "mail"), ("other", "mail"), ("other", "other")):
            assert value(found, "windlass_jobs_rescued_total", type=type_, queue=queue, to="queued") == 0
        assert value(found, "windlass_loop_blocked_seconds_bucket", le="+Inf") == 0
        assert value(found, "windlass_schedule_ticks_total", outcome="missed") == 0
        await app.enqueue("send")
        found = await scraped(app.metrics())
        assert value(found, "windlass_store_failures_total", doing="enqueue") == 0


async def test_any_number_of_scrapes_ask_the_store_once(app: Windlass) -> None:
    calls = Calls()
    app.store = app.client.store = calls.on(app.store)
    async with app:
        metrics = app.metrics()
        for _ in range(3):
            pages = await asyncio.gather(*(metrics.page() for _ in range(20)))
            assert all(b"windlass_store_up 1.0" in page.body for page in pages)
        asked = {
            name: n for name, n in calls.by_name.items() if name.startswith(("workers", "queues", "views", "types"))
        }
        assert asked["workers.list"] == 1
        assert set(asked.values()) <= {1, 2}, asked  # what is counted by status is counted in two parts


async def test_a_type_without_a_worker_is_told_until_one_is_there(app: Windlass) -> None:
    async with app:
        figures = Figures(app.client, every=0)
        await app.enqueue("send", delay=3600)
        await figures.look()
        assert figures.latest is not None
        assert figures.latest.unhandled == {"send": 1}
        async with working(app):
            await until(lambda: asked(figures, {}), "the worker to be seen")


async def asked(figures: Figures, unhandled: dict[str, int]) -> bool:
    await figures.look()
    return figures.latest is not None and figures.latest.unhandled == unhandled


async def test_while_the_store_is_away_a_scrape_tells_what_is_known(app: Windlass) -> None:
    async with app:
        await app.enqueue("send")
        metrics = app.metrics()
        metrics.source.figures.every = 0
        assert value(await scraped(metrics), "windlass_store_up") == 1
        away = asyncio.Event()

        async def refuses() -> None:
            raise StoreUnavailable("gone")

        app.store.workers.list = refuses  # type: ignore[method-assign,assignment]  # the edge: a server that is gone
        found = await scraped(metrics)
        assert value(found, "windlass_store_up") == 0
        assert value(found, "windlass_queue_jobs", queue="mail", status="queued") == 1

        app.store.workers.list = away.wait  # type: ignore[method-assign,assignment]  # and one that never answers
        began = asyncio.get_running_loop().time()
        found = await scraped(metrics)
        assert value(found, "windlass_store_up") == 0
        assert asyncio.get_running_loop().time() - began < 0.5


async def test_metrics_stand_in_a_registry_of_ones_own(app: Windlass) -> None:
    mine = CollectorRegistry()
    Gauge("orders_open", "Open orders.", registry=mine).set(3)
    metrics = app.metrics(mine)
    assert app.metrics() is metrics
    with pytest.raises(SettingsError, match="first call"):
        app.metrics(CollectorRegistry())
    async with app:
        found = await scraped(metrics)
    assert value(found, "orders_open") == 3
    assert value(found, "windlass_store_up") == 1
    with pytest.raises(ValueError, match="Duplicated"):
        Prometheus(metrics.source, app.registry, mine)


def test_the_quick_way_counts_as_the_table_says(app: Windlass) -> None:
    hub, tally, slow = Hub(), Tally(), Tally()
    hub.listen(Counting(app.registry, tally))
    bounds = Bounds(app.registry)
    for event in (*ALL, *ALL):
        announce(hub, event)
        for measure, n, labels in measured(event, bounds):
            slow.add(measure, n, labels)
    assert without_gauges(tally) == without_gauges(slow)
    assert sum(cells[0] for (measure, _), cells in tally.read().items() if measure is JOBS_STARTED) == 2


async def test_a_reporter_and_prometheus_are_told_the_same(app: Windlass) -> None:
    counted: Counter[str] = Counter()
    timed: defaultdict[str, list[float]] = defaultdict(list)

    class Reporter:
        def increment(self, name: str, value: float, tags: Mapping[str, str]) -> None:
            counted[f"{name} {' '.join(tags.values())}"] += int(value)

        def gauge(self, name: str, value: float, tags: Mapping[str, str]) -> None: ...

        def timing(self, name: str, seconds: float, tags: Mapping[str, str]) -> None:
            timed[f"{name} {' '.join(tags.values())}"].append(seconds)

    app.report_metrics(Reporter())
    metrics = app.metrics()
    async with app:
        for _ in range(20):
            await app.enqueue("send")
        await app.enqueue("fail")
        await app.worker(drain=True).run()
    found = now(metrics)
    for name, labels in (
        ("jobs.started", {"type": "send", "queue": "mail"}),
        ("jobs.enqueued", {"type": "send", "queue": "mail"}),
        ("jobs.ended", {"type": "send", "queue": "mail", "outcome": "succeeded"}),
        ("jobs.ended", {"type": "fail", "queue": "default", "outcome": "failed"}),
    ):
        metric = f"windlass_{name.replace('.', '_')}_total"
        assert counted[f"{name} {' '.join(labels.values())}"] == value(found, metric, **labels) > 0, name
    for name in ("job.run", "job.wait"):
        metric = f"windlass_{name.replace('.', '_')}_seconds"
        told = timed[f"{name} send mail"]
        assert len(told) == value(found, f"{metric}_count", type="send", queue="mail") == 20
        assert sum(told) == pytest.approx(value(found, f"{metric}_sum", type="send", queue="mail"))


def announce(hub: Hub, event: Event) -> None:
    """As a worker does."""
    match event:
        case JobClaimed(job):
            hub.claimed([job])
        case JobStarted(job):
            hub.started(job)
        case JobEnded(job, transition, seconds, raised):
            hub.ended([(job, transition, seconds, raised)])
        case _:
            hub.tell(event)


def without_gauges(tally: Tally) -> Series:
    return {key: cells for key, cells in tally.read().items() if key[0].kind is not Kind.GAUGE}


def test_the_page_lists_every_metric_with_its_kind_labels_and_words() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(windlass_\w+)` \| (\w+) \| ([^|]*) \| (.+) \|$", page, re.MULTILINE)
    told = {name: (kind, tuple(re.findall(r"`(\w+)`", labels)), words) for name, kind, labels, words in rows}
    assert told == {one.name: (one.kind, one.labels, one.help) for one in METRICS}
    for one in METRICS:
        assert (one.kind == "counter") == one.name.endswith("_total"), one
        assert (one.kind != "histogram") or one.name.endswith("_seconds"), one
