"""`types` and `check`, and `enqueue` of what workers have published."""

from __future__ import annotations

import pytest

from tests.cli.support import Shop
from windlass import Batched, Job, Retry, Windlass

pytestmark = pytest.mark.timeout(60)

NEWER = """
from windlass import Windlass

app = Windlass("sqlite:///shop.db", version="2")

@app.job(queue="post", retry=7)
async def send(order: int, copies: int = 1) -> str:
    return ""

@app.job
async def report() -> None: ...
"""


@pytest.fixture
def published(shop: Shop) -> Shop:
    """A worker has been there, and three of its jobs wait."""

    async def work(app: Windlass) -> None:
        app.client.version = "1"

        @app.job(queue="mail", retry=Retry(3, never=(ValueError,)), timeout=30, unique="order:{order_id}")
        async def send(order_id: int, copies: int = 1) -> str:
            return ""

        @app.job
        async def old() -> None: ...

        async with app.worker(queues=["nothing"]):
            for order_id in range(3):
                await send.enqueue(order_id)
            await old.enqueue()

    shop.ask(work)
    return shop


def job_of(shop: Shop, job_id: str) -> Job:
    async def get(app: Windlass) -> Job:
        return await app.jobs.get(job_id)

    return shop.ask(get)


def test_types_show_batches_and_expiry(shop: Shop) -> None:
    async def work(app: Windlass) -> None:
        @app.job(batch=25, expires=90)
        async def index(jobs: list[Batched[int, None]]) -> None: ...

        async with app.worker():
            pass

    shop.ask(work)
    out = shop.ok("types", "index")
    assert "at most 25 jobs in one call" in out
    assert "1 m 30 s" in out


def test_types_are_listed_with_their_options_in_words(published: Shop) -> None:
    assert published.ok("types").splitlines()[0].split() == [
        *("type", "queue", "options", "versions", "last", "seen", "workers", "waiting")
    ]
    out = published.ok("types")
    [line] = [line for line in out.splitlines() if line.startswith("send")]
    assert "retry 3 attempts, never after ValueError; timeout 30.0 s; unique order:{order_id}" in line
    assert "1 (" in line
    assert line.endswith("none     3")


def test_one_type_is_told_of_at_length(published: Shop) -> None:
    out = published.ok("types", "send")
    assert "send: 0 live workers, 3 waiting" in out
    assert "takes        order_id: integer, [copies: integer]" in out
    said = published.call("types", "unheard")
    assert said.code == 4
    assert "unheard" in said.err


def test_types_as_json_hold_schemas_and_fingerprints(published: Shop) -> None:
    facts = {fact["type"]: fact for fact in published.call("types", "--json").facts}
    assert set(facts) == {"send", "old"}
    assert facts["send"]["waiting"] == 3
    [version] = facts["send"]["versions"]
    assert version["payload_schema"]["required"] == ["order_id"]
    assert (version["queue"], version["version"], len(version["fingerprint"])) == ("mail", "1", 64)
    assert version["options"]["unique"] == {"queued": "order:{order_id}", "running": "order:{order_id}"}


def test_no_types_are_told_of_too(shop: Shop) -> None:
    shop.ok("migrate")
    assert "no types yet" in shop.ok("types")


def test_a_job_enqueued_by_name_is_as_declared(published: Shop) -> None:
    said = published.call("enqueue", "send", "order_id=7")
    assert (said.code, said.err) == (0, "")
    job = job_of(published, said.out.strip())
    assert (job.queue, job.max_attempts, job.unique_key) == ("mail", 3, "order:7")
    said = published.call("enqueue", "send", "order=7")
    assert said.code == 2
    assert "order_id: Field required" in said.err


def test_a_type_that_nobody_has_told_of_is_enqueued_and_remarked_on(published: Shop) -> None:
    said = published.call("enqueue", "unheard", "a=1")
    assert said.code == 0
    assert "no worker has told of the type unheard" in said.err
    assert "unheard" not in said.out


def test_check_names_what_the_code_could_not_read(published: Shop) -> None:
    (published.home / "newer.py").write_text(NEWER)
    said = published.process("check", "newer:app", "--store", published.url)
    assert said.code == 1
    assert "FAIL send: does not fit its types: order: Field required; order_id: Extra inputs" in said.out
    assert "WARN old: not in this code; 1 job waits" in said.out
    for line in (
        "queue: mail → post",
        "retry: 3 attempts, never after ValueError → 7 attempts",
        "unique: order:{order_id} → not",
    ):
        assert line in said.out
    assert "payload: order is new and required" in said.out
    assert "payload: order_id is gone" in said.out
    assert "no worker has told yet of report" in said.out
    assert "cannot read 3 waiting jobs, its workers would put them aside: 4 waiting jobs looked at" in said.out
    assert "fix: " in said.out


def test_check_as_json_for_machines(published: Shop) -> None:
    (published.home / "newer.py").write_text(NEWER)
    said = published.process("check", "newer:app", "--store", published.url, "--most", "2", "--json")
    assert said.code == 1
    fact = said.fact
    assert (fact["fine"], fact["looked_at"], fact["complete"], fact["unreadable_in_all"]) == (False, 2, False, 2)
    assert [one["type"] for one in fact["unreadable"]] == ["send", "send"]
    assert fact["new"] == ["report"]
    said = published.process("check", "newer:app", "--store", published.url, "--most", "2")
    assert "the oldest; more are waiting" in said.out


def test_code_that_fits_passes(published: Shop) -> None:
    (published.home / "same.py").write_text(NEWER.replace("order: int", "order_id: int").replace("report", "old"))
    said = published.process("check", "same:app", "--store", published.url)
    assert said.code == 0, said
    assert "PASS this code can read what waits: 4 waiting jobs looked at" in said.out
    assert "FAIL" not in said.out


def test_what_an_upgrade_takes_on_passes(published: Shop) -> None:
    upgrade = NEWER + (
        "\n@send.upgrade(from_=dict)\ndef upgraded(old: dict) -> dict:\n    return {'order': old['order_id']}\n"
    )
    (published.home / "upgraded.py").write_text(upgrade)
    said = published.process("check", "upgraded:app", "--store", published.url)
    assert said.code == 0, said


def test_check_needs_a_store(shop: Shop) -> None:
    (shop.home / "newer.py").write_text(NEWER)
    said = shop.process("check", "newer:app", "--store", "sqlite:///nowhere.db")
    assert said.code == 3
