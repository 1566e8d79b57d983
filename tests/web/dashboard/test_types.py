"""Types in the dashboard: what they take, and one enqueued by hand."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect
from pydantic import BaseModel, Field

from tests.web.dashboard.browsing import IN_BROWSER, Site
from windlass import Secret, Windlass
from windlass.core.sealing import SCHEMA_MARK
from windlass.web.dashboard.pages.types.fields import fields_of, says

HOSTILE = "<img src=x onerror=alert(1)>'\"&{{7*7}}"


class Address(BaseModel):
    """Where somebody lives."""

    city: str
    code: int = Field(ge=1, le=99_999)


def declare(app: Windlass) -> None:
    @app.job(name="parcel", queue="post")
    async def parcel(
        to: Address, weight: float, size: int | None = None, express: bool = False, tags: list[str] | None = None
    ) -> dict[str, int]:
        return {}


SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"Address": {"type": "object", "title": "Address", "description": "Where", "required": ["city"],
                          "properties": {"city": {"type": "string"}, "in": {"$ref": "#/$defs/Address"}}}},
    "required": ["to", "kind"],
    "properties": {
        "to": {"$ref": "#/$defs/Address"},
        "kind": {"enum": ["a", "b"], "type": "string"},
        "n": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None},
        "on": {"type": "boolean"},
        "at": {"type": "string", "format": "date-time"},
        "many": {"type": "array", "items": {"type": "number"}},
        "key": {"type": "string", SCHEMA_MARK: True, "writeOnly": True, "format": "password"},
        "any": {},
    },
}  # fmt: skip


def test_a_schema_becomes_fields() -> None:
    fields = fields_of(SCHEMA)
    assert fields is not None
    told = {one.name: (one.kind, one.says, one.required) for one in fields}
    assert told == {
        "to": ("group", "Address: city, in", True),
        "kind": ("choice", "a or b", True),
        "n": ("number", "whole number, at least 1 or nothing", False),
        "on": ("boolean", "true or false", False),
        "at": ("text", "date and time", False),
        "many": ("json", "list of number", False),
        "key": ("secret", "secret", False),
        "any": ("json", "anything", False),
    }
    to = fields[0]
    assert (to.about, [one.path for one in to.inside]) == ("Where", ["to.city", "to.in"])
    deepest = to.inside[1].inside[1].inside[1]
    assert (deepest.kind, deepest.inside) == ("json", ())  # a type that holds itself has an end here


@pytest.mark.parametrize(
    "schema", [None, {}, {"type": "array"}, {"type": "string"}, {"$ref": "#/$defs/x"}, {"$ref": 5}]
)
def test_what_is_no_object_has_no_fields(schema: dict[str, Any] | None) -> None:
    assert fields_of(schema) is None
    assert says(schema)


class TestInABrowser:
    pytestmark = IN_BROWSER

    async def test_one_is_enqueued_from_fields(self, site_at: Site) -> None:
        declare(site_at.app)
        key = "admin"
        page = await (await site_at.look(key)).go("/types")
        await page.get_by_role("link", name="parcel").click()
        await expect(page.locator("main")).to_contain_text("Where somebody lives.")
        await page.get_by_label("code whole number").fill("0")
        await page.get_by_label("weight").fill("heavy")
        await page.get_by_label("size").fill("9007199254740993")
        await page.get_by_label("tags list").fill("[1")
        await page.get_by_role("button", name="Enqueue").click()
        await expect(page.locator('[data-wrong="tags"]')).to_contain_text("no JSON")
        await page.get_by_label("tags list").fill('["<b>"]')
        await page.get_by_role("button", name="Enqueue").click()
        await expect(page.locator('[data-wrong="weight"]')).to_contain_text("number")
        await expect(page.locator('[data-wrong="to.code"]')).to_contain_text("greater than or equal to 1")
        await expect(page.get_by_label("code whole number")).to_have_attribute("aria-invalid", "true")
        assert (await site_at.app.jobs.count()).n == 0
        await page.get_by_label("code whole number").fill("10115")
        await page.get_by_label("city text").fill(HOSTILE)
        await page.get_by_label("weight").fill("1.50")
        await page.get_by_label("express").select_option("true")
        await page.get_by_text("Options", exact=True).click()
        await page.get_by_label("Priority").select_option("high")
        await page.get_by_label("Tags, separated").fill("vip by-hand")
        await page.get_by_role("button", name="Enqueue").click()
        made = page.get_by_role("link", name="job …")
        await expect(made).to_be_visible()
        [job] = (await site_at.app.jobs.find(limit=5)).jobs
        assert str(await made.get_attribute("href")).endswith(job.id)
        assert job.payload == {
            "to": {"city": HOSTILE, "code": 10115},
            "weight": 1.5,
            "size": 9007199254740993,
            "express": True,
            "tags": ["<b>"],
        }
        assert (job.priority, sorted(job.tags), job.queue) == (50, ["by-hand", "vip"], "post")

    async def test_one_is_enqueued_from_json(self, site: Site) -> None:
        page = await (await site.look("admin")).go("/types/one?type=mail.send")
        await page.get_by_label("to text").fill("ann")
        await page.get_by_role("button", name="JSON", exact=True).click()
        whole = page.get_by_label("Payload as JSON")
        await expect(whole).to_have_value('{"to":"ann"}')
        await whole.fill('{"to": "ann", "copies": "many"}')
        await page.get_by_role("button", name="Enqueue").click()
        await expect(page.get_by_role("alert")).to_contain_text("copies")
        await whole.fill('{"to": "ann", "copies": 9007199254740993}')
        await page.get_by_role("button", name="Enqueue").click()
        await expect(page.get_by_role("link", name="job …")).to_be_visible()
        [job] = (await site.app.jobs.find(limit=5)).jobs
        assert job.payload == {"to": "ann", "copies": 9007199254740993}

    async def test_a_secret_is_typed_unseen_and_shown_nowhere(self, site: Site) -> None:
        @site.app.job(name="pay")
        async def pay(iban: Secret[str], cents: int) -> None: ...

        look = await site.look()
        page = await look.go("/types/one?type=pay")
        field = page.get_by_label("iban secret")
        assert await field.get_attribute("type") == "password"
        await field.fill("DE-canary-99")
        await page.get_by_role("button", name="JSON", exact=True).click()
        assert "canary" not in await page.get_by_label("Payload as JSON").input_value()
        assert "canary" not in page.url

    @pytest.mark.parametrize("path", ["/types", "/types/one?type=parcel", f"/types/one?type={HOSTILE}"])
    async def test_pages_are_for_everybody_and_names_are_text(self, site: Site, path: str) -> None:
        declare(site.app)

        @site.app.job(name=HOSTILE)
        async def hostile(a: int = 1) -> None: ...

        look = await site.look()
        page = await look.go(path.replace("&", "%26"))
        await page.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true")
        assert await page.locator("h1").count() == 1
        assert await look.axe() == []
        assert await page.locator("main img").count() == 0
        for width in (320, 375, 768, 1440):
            await page.set_viewport_size({"width": width, "height": 700})
            assert await look.overflow() <= 0, f"{path} is wider than {width}"
            await look.shot(f"types-{path[6:18].strip('?')}-{width}")

    @pytest.mark.parametrize("role", ["reader", "user", "operator"])
    async def test_who_may_not_enqueue_is_shown_no_form_and_refused(self, site: Site, role: str) -> None:
        look = await site.look(role)
        page = await look.go("/types/one?type=mail.send")
        assert "Declared options" in await look.text()
        assert await page.locator("#enqueue").count() == 0
        told = await page.evaluate(
            "path => fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'},"
            ' body: \'{"type":"mail.send","payload":{"to":"x"}}\'}).then(a => a.status)',
            f"{site.prefix}/api/v1/queue/enqueue",
        )
        assert told == 403
        assert (await site.app.jobs.count()).n == 0

    async def test_a_limited_key_sees_only_its_own_types(self, site: Site) -> None:
        declare(site.app)
        import httpx

        key = await site.app.keys.create("limited", owner="*", scopes=["read"], types=["mail.*"])
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key.secret}"}) as client:
            assert "parcel" not in (await client.get(f"{site.url}/types")).text
            assert (await client.get(f"{site.url}/types/one", params={"type": "parcel"})).status_code >= 400
            assert (await client.get(f"{site.url}/types/one", params={"type": "mail.send"})).status_code == 200

    async def test_without_a_script_it_can_be_read(self, site: Site) -> None:
        look = await site.look(script=False)
        page = await look.go("/types/one?type=mail.send")
        assert "windlass enqueue mail.send" in await look.text()
        assert await page.locator(".js-only:visible").count() == 0
