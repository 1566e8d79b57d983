"""What pages are made of, asked without a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from windlass import SettingsError, Windlass
from windlass.client.charts import charts_of
from windlass.core.declared import Declared
from windlass.stores.contract import TypeInfo
from windlass.web.access.authenticating import Open
from windlass.web.dashboard import charts
from windlass.web.dashboard.assets import Assets
from windlass.web.dashboard.charts import Series, Shared
from windlass.web.dashboard.dashboard import Dashboard
from windlass.web.dashboard.json_tree import MOST, json_tree
from windlass.web.dashboard.pages.overview.deploys import deploys
from windlass.web.dashboard.rendering import FOLDER
from windlass.web.dashboard.room import FRAME, Page, Rail, Room
from windlass.web.dashboard.words import counted, moment, number, share, short, visible

EVIL = "</svg><script>alert(1)</script>\u202e\x1b[2J"
AT = [datetime(2026, 3, 1, 9, n, tzinfo=UTC) for n in range(3)]


def test_json_keeps_every_digit_and_is_text() -> None:
    told = json_tree({"big": 9007199254740993, "float": 1e-7, EVIL: [EVIL, None, True, {}]})
    assert "9007199254740993" in told
    assert "1e-07" in told
    assert "<script" not in told
    assert "\u202e" not in told
    assert "\\u202e" in told
    assert told.count("<details") == told.count("</details>") == 2


def test_json_of_any_size_stays_a_page() -> None:
    deep: object = 1
    for _ in range(60):
        deep = [deep]
    assert json_tree(deep).count("<li>") == 60
    wide = json_tree([[n] for n in range(100_000)])
    assert wide.count("<li>") <= MOST
    assert "100,000 items" in wide
    assert "and more" in wide
    assert len(json_tree("x" * 1_000_000)) < 3_000


@pytest.mark.parametrize("draw", [charts.stacked, charts.lines, charts.bands])
def test_a_chart_has_the_same_figures_as_a_table_and_no_style(draw: Callable[..., str]) -> None:
    told = draw(EVIL, AT, [Series(EVIL, [1, None, 12_345], 1), Series("failed", [0, 2, 3], 4)], number)
    assert re.findall(r'<td class="num">([^<]*)</td>', told) == ["1", "0", "–", "2", "12,345", "3"]
    assert not re.search(r"style=|<script|on\w+=", told)
    assert not draw("Nothing", [], [], number).count("NaN")


def test_a_heat_map_is_darker_where_there_is_more() -> None:
    told = charts.heat("Run times", AT, [("< 1 s", [0, 1, 100]), ("< 10 s", [0, 0, 7])])
    shades = dict(re.findall(r'heat h(\d)" d="([^"]+)"', told))
    assert {shade: path.count("M") for shade, path in shades.items()} == {"1": 1, "3": 1, "6": 1}
    assert shades["6"].startswith("M666.7 100.0h")
    assert '<td class="num">100</td>' in told


def test_a_chart_on_a_shared_axis_carries_its_figures_for_a_script_and_can_be_a_table() -> None:
    shared = Shared(
        name="x", step=timedelta(minutes=1), zoom="?from=FROM&until=UNTIL", table="?table=x", jobs="/j?q=QUERY"
    )
    series = [Series(EVIL, [1, None, 1234.5], 1, "12", "/list?a=1&b=2", 'queue:"a b"')]
    told = charts.lines(EVIL, AT, series, shared=shared)
    assert 'data-v="1 - 1234.5"' in told
    assert f'data-first="{AT[0].timestamp() * 1000:.0f}"' in told
    assert "<script" not in told
    assert "<table" not in told
    table = charts.lines(EVIL, AT, series, shared=replace(shared, as_table=True))
    assert re.findall(r'<td class="num">([^<]*)</td>', table) == ["1", "–", "1,234.5"]
    assert "<svg" not in table


def test_percentiles_far_apart_are_all_seen() -> None:
    told = charts.bands("Waits", AT, [Series("p50", [2, 3, 2]), Series("p99", [60_000, None, 90_000])], charts.in_ms)
    assert re.findall(r"<span>([^<]+)</span>", told)[:2] == ["1 m 40 s", "10.0 s"]
    heights = [
        float(y)
        for points in re.findall(r'<polyline[^>]+points="([^"]+)"', told)
        for y in re.findall(r",([\d.]+)", points)
    ]
    assert max(heights) < 195
    assert min(heights) > 0
    assert charts.round_up(0) == 1
    assert [charts.round_up(n) for n in (0.9, 7, 11, 480)] == [1.0, 8.0, 15.0, 500.0]


def test_small_drawings_stand_any_figures() -> None:
    for values in ([], [0], [0, 0], [5], [1, 2, 10**12]):
        assert "nan" not in charts.sparkbars(values, EVIL).lower()
        assert "nan" not in charts.sparkline(values, EVIL).lower()
    assert 'width="100.0"' in charts.bar(50, 10, "too many")
    assert 'width="0.0"' in charts.bar(1, 0, "of none")


def test_figures_are_told_shortly() -> None:
    assert [short(n) for n in (0, 950, 9_999, 12_345, 123_456, 4_500_000, None)] == [
        "0", "950", "9,999", "12.3k", "123k", "4.5M", "–",
    ]  # fmt: skip
    assert [share(part) for part in (0, 0.0042, 0.5, None)] == ["0 %", "0.4 %", "50 %", "–"]
    assert visible("a\u200bb\ud800\x00") == "a\\u200bb\\ud800\\u0000"
    assert "2026-03-01 09:00:00.000 UTC" in moment(AT[0])
    assert ">in 1 h<" in moment(datetime.now(UTC) + timedelta(hours=1, seconds=30))
    from windlass.stores.contract import Count

    assert counted(Count(1000, exact=False)) == "1,000+"


async def _nothing(visit: object) -> dict[str, object]:
    return {}


def room_at(folder: Path, name: str = "shop", path: str = "/shop") -> Room:
    (folder / "shop.html").write_text(
        '{% extends "frame/page.html" %}{% block main %}<h1>Shop</h1>'
        '{% block live_now %}<section data-live="now">{{ visit.asked("q") | visible }}</section>{% endblock %}'
        "{% endblock %}"
    )
    rail = Rail(word="Shop", icon="M3 3h14", order=100)
    page = Page(path=path, title="Shop", template="shop.html", show=_nothing, rail=rail)
    return Room(name=name, folder=folder, pages=(page,))


async def test_an_application_hangs_in_pages_of_its_own(app: Windlass, tmp_path: Path) -> None:
    import httpx

    app.add_pages(lambda: room_at(tmp_path))
    key = await app.keys.create("a test", owner="*", scopes=["read"])
    headers = {"Authorization": f"Bearer {key.secret}"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app.asgi()), base_url="http://windlass/dashboard", headers=headers
    ) as client:
        page = (await client.get("/shop?q=<b>")).text
        assert "<h1>Shop</h1>" in page
        assert "&lt;b&gt;" in page
        region = await client.get("/shop?q=<b>", headers={"X-Windlass-Regions": "shared"})
        assert region.text == '<section data-live="now">&lt;b&gt;</section>'
        assert (await client.get("/nowhere")).status_code == 404


def test_a_room_that_cannot_be_is_told_at_once(tmp_path: Path) -> None:
    for wrong in ({"name": "frame"}, {"name": "../x"}, {"path": "no-slash"}, {"path": "/a/../{b c}"}):
        with pytest.raises(SettingsError):
            room_at(tmp_path, **wrong)
    with pytest.raises(SettingsError, match="two"):
        Dashboard(Open(), [room_at(tmp_path, path="/queues")])


def test_what_a_browser_loads_is_small_and_kept(app: Windlass) -> None:
    dashboard: Dashboard = app.asgi().state.dashboard
    assert dashboard.assets.weight <= 60 * 1024
    assert Assets({FRAME: FOLDER}).weight <= 25 * 1024


def test_deploys_are_marked_where_new_versions_were_seen_first() -> None:
    def seen(type_: str, minutes: float, version: str | None) -> TypeInfo:
        at = AT[0] + timedelta(minutes=minutes)
        return TypeInfo(declared=Declared(type_, "{}", version), first_seen=at, last_seen=at, announced_at=at)

    told = charts_of(AT[0] + timedelta(minutes=10), timedelta(minutes=15), [])
    types = [
        *(seen(f"a{n}", 0.2, "2.4.0") for n in range(3)),
        seen("b", 1, "2.4.1"),
        seen("windlass.bulk", 1, None),
        seen("old", -60, "1.0"),
        seen("late", 90, "3.0"),
    ]
    [mark] = deploys(types, told)
    assert (mark.words, mark.at) == ("2.4.0, 2.4.1, 4 types", AT[0] + timedelta(minutes=0.2))
    shared = Shared(name="x", step=timedelta(minutes=1), zoom="", table="", marks=(mark,))
    drawn = charts.lines("Jobs", AT, [Series("n", [1, 2, 3])], shared=shared)
    assert 'class="mark-line" d="M66.7 0V200"' in drawn
    assert "mark-line" not in charts.lines("Jobs", AT, [Series("n", [1, 2, 3])])
