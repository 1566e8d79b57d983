"""Schedules in the dashboard: what they do, told in words, and changing them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, expect

from tests.support.until import until
from tests.web.dashboard.browsing import IN_BROWSER, Site
from windlass import Windlass, cron, every
from windlass.stores.contract import Fired, Firing, Schedule
from windlass.web.dashboard.pages.schedules import strip, telling
from windlass.web.dashboard.pages.schedules.strip import Mark

HOSTILE = "<img src=x onerror=alert(1)>'\"&{{7*7}}"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (cron("0 9 * * mon-fri"), "Weekdays at 09:00"),
        (cron("30 2 * * *"), "Daily at 02:30"),
        (cron("0 8,20 * * 1"), "Mondays at 08:00 and 20:00"),
        (cron("*/5 * * * *"), "Every 5 minutes"),
        (cron("*/15 * * * *"), "Every 15 minutes"),
        (cron("0 * * * *"), "Every hour"),
        (cron("0 0 1 * *"), "On the first of every month at 00:00"),
        (cron("0 0 * * 5#2"), "At 00:00 on the second Friday of the month"),
        (every(60), "Every minute"),
        (every(5400), "Every 90 minutes"),
    ],
)
def test_a_rule_is_told_as_people_say_it(rule: object, words: str) -> None:
    assert telling.in_words(rule) == words  # type: ignore[arg-type]  # either kind


def test_runs_that_a_change_of_the_clocks_touches_say_so() -> None:
    night = cron("30 2 * * *", tz="Europe/Berlin")
    [_, spring, _] = telling.runs(night, datetime(2026, 3, 28, 1, 30, tzinfo=UTC), 3)
    assert spring.at == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    assert "left out, so it runs at 03:00" in spring.warning
    [autumn] = telling.runs(night, datetime(2026, 10, 25, 0, 30, tzinfo=UTC), 1)
    assert "02:30 comes twice, and this is the first time" in autumn.warning
    found = telling.next_affected(night, datetime(2026, 1, 1, tzinfo=UTC))
    assert found is not None
    assert found.at == spring.at
    [_, after] = telling.runs(cron("0 9 * * *", tz="Europe/Berlin"), datetime(2026, 3, 28, 8, tzinfo=UTC), 2)
    assert after.warning == "the clocks go forward before it: 23 h after the run before"


@pytest.mark.parametrize("rule", [cron("30 2 * * *"), cron("* * * * *", tz="Europe/Berlin"), every(3600)])
def test_others_do_not(rule: object) -> None:
    assert telling.next_affected(rule, datetime(2026, 1, 1, tzinfo=UTC)) is None  # type: ignore[arg-type]  # either kind
    runs = telling.runs(rule, datetime(2026, 3, 28, 1, 30, tzinfo=UTC))  # type: ignore[arg-type]  # the same
    assert [run.warning for run in runs] == [""] * 5


def test_a_strip_tells_by_form_what_it_tells_by_colour() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    marks = [Mark(at, "succeeded"), Mark(at, "failed"), Mark(at, "missed", 3), Mark(at, "succeeded")]
    assert strip.told(marks) == "3 missed, 2 succeeded, 1 failed"
    drawn = strip.strip(marks)
    assert 'aria-label="Last ticks: 3 missed, 2 succeeded, 1 failed"' in drawn
    assert len({form.partition(">")[2].partition("</title>")[2] for form in drawn.split("<g ")[1:]}) == 4


class TestInABrowser:
    pytestmark = IN_BROWSER

    async def test_one_is_made_with_its_next_runs_in_sight(self, site_at: Site) -> None:
        look = await site_at.look("operator", timezone_id="Asia/Tokyo", locale="en-GB")
        page = await look.go("/schedules")
        await page.get_by_role("link", name="New schedule").click()
        await page.get_by_label("Name").fill("letters")
        await page.get_by_label("Type").fill("mail.send")
        await page.get_by_label("Cron expression").fill("0 9 * *")
        await expect(page.locator("#wrong-cron")).to_contain_text("has 4 fields")
        await expect(page.locator(".preview")).to_contain_text("cannot run yet")
        await page.get_by_role("button", name="Weekdays at 09:00").click()
        await expect(page.locator("#wrong-cron")).to_have_count(0)
        await page.get_by_label("Time zone").fill("Europe/Berln")
        await expect(page.locator("#wrong-tz")).to_contain_text("did you mean 'Europe/Berlin'?")
        await page.get_by_label("Time zone").fill("Europe/Berlin")
        await expect(page.locator(".preview li")).to_have_count(5)
        await expect(page.locator(".preview")).to_contain_text("09:00 CE")
        await page.get_by_label("Payload").fill('{"to": 12345678901234567890')
        await page.get_by_role("button", name="Create it").click()
        await expect(page.locator("#wrong-payload")).to_contain_text("no payload")
        await page.get_by_label("Payload").fill('{"to": "ann", "copies": 9007199254740993}')
        await page.get_by_role("button", name="Create it").click()
        await expect(page.locator("h1")).to_have_text("letters")
        [made] = await site_at.app.schedules.list()
        assert made.cron == cron("0 9 * * mon-fri", tz="Europe/Berlin")
        assert "9007199254740993" in made.payload_json
        assert "9007199254740993" in await look.text()
        assert "For you, in Asia/Tokyo" in await look.text()
        first = page.get_by_role("region", name="Table of next runs").locator("tbody tr").first
        assert "09:00 CE" in await first.inner_text()
        assert await first.locator("td").first.inner_text() != await first.locator("th").inner_text()
        # And then what one does with it.
        await page.get_by_role("button", name="Run now").click()
        await until(lambda: _waiting(site_at.app), "its job to be enqueued")
        await page.get_by_role("button", name="Pause", exact=True).click()
        await expect(page.locator("main .badge").first).to_have_text("paused")
        await page.get_by_role("button", name="Resume").click()
        await expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete it").click()
        await expect(page).to_have_url(f"{site_at.url}/schedules")
        assert await site_at.app.schedules.list() == []

    async def test_one_is_changed_and_keeps_what_the_form_does_not_show(self, site: Site) -> None:
        await site.app.schedules.put(
            "letters", "mail.send", every(90), {"to": "ann"}, tags=["a"], priority="high", queue="other"
        )
        page = await (await site.look("operator")).go("/schedules/one?name=letters")
        await page.get_by_role("link", name="Change").click()
        await expect(page.get_by_label("Name")).to_have_value("letters")
        await expect(page.get_by_label("Every", exact=True)).to_have_value("90")
        await page.get_by_label("Every", exact=True).fill("soon")
        await expect(page.locator("#wrong-amount")).to_contain_text("no whole number")
        await page.get_by_label("Every", exact=True).fill("2")
        await page.get_by_label("Unit").select_option("h")
        await expect(page.locator(".preview h3")).to_have_text("Every 2 hours")
        await page.get_by_role("button", name="Save").click()
        await page.wait_for_url("**/schedules/one?name=letters")
        await expect(page.locator("main")).to_contain_text("Every 2 hours")
        [now] = await site.app.schedules.list()
        assert (now.cron, now.queue) == (every(7200), "other")
        assert '"tags": ["a"]' in now.options_json.replace('":[', '": [')
        assert '"priority": 50' in now.options_json.replace('":5', '": 5')

    async def test_what_the_api_refuses_is_said_and_nothing_is_lost(self, site: Site) -> None:
        page = await (await site.look("operator")).go("/schedules/edit")
        await page.get_by_label("Name").fill("letters")
        await page.get_by_label("Type").fill("mail.send")
        await page.get_by_label("Payload").fill('{"nobody": 1}')
        await page.get_by_role("button", name="Create it").click()
        await expect(page.get_by_role("alert")).to_contain_text("mail.send does not fit")
        await expect(page.get_by_label("Payload")).to_have_value('{"nobody": 1}')
        assert await site.app.schedules.list() == []

    async def test_what_became_of_its_ticks_is_told(self, site: Site) -> None:
        await ticked(site.app)
        look = await site.look()
        page = await look.go("/schedules")
        await expect(page.locator("tr", has_text="minutely")).to_contain_text("1 waiting")
        await expect(page.locator("tr", has_text="minutely")).to_contain_text("3 missed")
        await page.get_by_role("link", name="minutely").click()
        words = await page.locator("[data-live=ticks] .badge").all_inner_texts()
        assert words == ["skipped", "waiting", "missed × 3"]
        assert await page.locator("[data-live=ticks] .mono").count() == 1

    @pytest.mark.parametrize(
        "path", ["/schedules", "/schedules/one?name=minutely", "/schedules/edit?rule=every&name=x"]
    )
    async def test_pages_are_for_everybody(self, site: Site, path: str) -> None:
        await ticked(site.app)
        await site.app.schedules.put(HOSTILE, "mail.send", cron("30 2 * * *", tz="Europe/Berlin"), {"to": HOSTILE})
        look = await site.look()
        page = await look.go(path)
        assert await look.axe() == []
        assert await page.locator("main img").count() == 0
        for width in (320, 375, 768, 1440):
            await page.set_viewport_size({"width": width, "height": 700})
            assert await look.overflow() <= 0, f"{path} is wider than {width}"
            await look.shot(f"schedules-{path[11:15].strip('?')}-{width}")

    async def test_names_are_text(self, site: Site) -> None:
        await site.app.schedules.put(HOSTILE, "mail.send", every(60), {"to": HOSTILE})
        look = await site.look()
        page = await look.go("/schedules")
        await page.get_by_role("link", name=HOSTILE).click()
        assert await page.locator("h1").inner_text() == HOSTILE
        await page.get_by_role("button", name="Pause", exact=True).click()
        await expect(page.locator("main .badge").first).to_have_text("paused")
        assert (await site.app.schedules.list())[0].paused_at is not None

    async def test_who_only_reads_is_shown_no_button_and_refused(self, site: Site) -> None:
        await site.app.schedules.put("letters", "mail.send", every(60), {"to": "ann"})
        page = await (await site.look("reader")).go("/schedules/one?name=letters")
        assert await page.locator("[data-act]").count() == 0
        for path in ("/schedules/edit", "/schedules/edit?change=letters"):
            answer = await page.goto(f"{site.url}{path}")
            assert answer is not None
            assert answer.status == 403
        for method, path in (("POST", "letters/run"), ("PUT", "letters"), ("DELETE", "letters")):
            assert await asked(page, method, f"{site.prefix}/api/v1/schedules/{path}") == 403
        user = await (await site.look("user")).go("/")
        answer = await user.goto(f"{site.url}/schedules")
        assert answer is not None
        assert answer.status == 403

    async def test_without_a_script_a_rule_can_be_tried(self, site: Site) -> None:
        await site.app.schedules.put("letters", "mail.send", every(60), {"to": "ann"})
        look = await site.look(script=False)
        page = await look.go("/schedules/edit")
        await page.get_by_label("Cron expression").fill("0 8 * * mon")
        await page.get_by_role("button", name="Try the rule").click()
        await expect(page.locator(".preview h3")).to_have_text("Mondays at 08:00")
        await look.go("/schedules/one?name=letters")
        assert await page.locator(".js-only:visible").count() == 0
        assert "Every minute" in await look.text()

    async def test_many_are_found_by_name(self, site: Site) -> None:
        for n in range(60):
            await site.app.schedules.put(f"letters-{n:02d}", "mail.send", every(3600), {"to": "ann"})
        look = await site.look()
        page = await look.go("/schedules")
        await expect(page.locator("tbody tr")).to_have_count(50)
        await page.keyboard.press("]")
        await expect(page.locator("tbody tr")).to_have_count(10)
        await page.get_by_label("Find by name or type").fill("-07")
        await page.get_by_role("button", name="Find").click()
        await expect(page.locator("tbody tr")).to_have_count(1)


async def ticked(app: Windlass) -> None:
    """A schedule that missed three ticks, made one job and skipped a tick."""
    now = (await app.store.now()).replace(second=0, microsecond=0)
    minute = timedelta(minutes=1)
    first = now - 6 * minute
    await app.store.schedules.put(
        [
            Schedule(
                name="minutely",
                cron=cron("* * * * *"),
                type="mail.send",
                payload_json='{"to":"ann"}',
                queue="mail",
                next_tick=first,
            )
        ]
    )
    draft = app.registry.get("mail.send")
    made = draft.draft(app.client.ids(), '{"to":"ann"}', draft.options)
    made = made._replace(options=made.options.__class__(queue="mail", schedule="minutely", tick=first + 3 * minute))
    firings = [
        Firing(name="minutely", expected=first, next_tick=first + 3 * minute, draft=None, ticks=3),
        Firing(name="minutely", expected=first + 3 * minute, next_tick=first + 4 * minute, draft=made),
        Firing(
            name="minutely",
            expected=first + 4 * minute,
            next_tick=now + minute,
            draft=made._replace(id=app.client.ids()),
            unless_live=True,
        ),
    ]
    assert await app.store.schedules.fire(firings) == [Fired.MISSED, Fired.FIRED, Fired.SKIPPED]


async def _waiting(app: Windlass) -> bool:
    return (await app.jobs.count(schedule="letters")).n == 1


async def asked(page: Page, method: str, path: str) -> int:
    """What the API answers this page's own session."""
    status: int = await page.evaluate(
        "([method, path]) => fetch(path, {method, headers: {'Content-Type': 'application/json'},"
        ' body: method === \'PUT\' ? \'{"type":"mail.send","every":60}\' : undefined}).then(a => a.status)',
        [method, path],
    )
    return status
