"""Schemathesis over the OpenAPI document: what it allows, what it does not, and what follows from what.

All its checks: nothing is answered with 500 or more, nothing otherwise than documented, nothing invalid is accepted,
and nothing valid refused. WINDLASS_TEST_SCHEMATHESIS says how many examples of each route a longer run takes; then the
coverage of every keyword of every schema is looked at, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import jwt
import pytest

from tests.support.serving import key_at, serving
from windlass.web.given import KEY, NAME
from windlass.web.live.words import MEDIA_TYPE

LONGER = os.environ.get("WINDLASS_TEST_SCHEMATHESIS")
EXAMPLES = LONGER or "4"
FEWER = LONGER or "2"
APP = """
from pydantic import BaseModel

from windlass import Windlass

app = Windlass("sqlite:///shop.db?synchronous=OFF")

class Address(BaseModel):
    street: str
    zip: int

@app.job(name="mail.send", queue="mail")
async def send(to: str, address: Address | None = None, copies: int = 1) -> str:
    return to

@app.job(name="tidy")
async def tidy(days: float = 1) -> list[int]:
    return []
"""
CONFIG = """
hooks = "checks.py"

[phases.coverage]
unexpected-methods = ["PATCH"]
"""
# The two checks of what is valid are made here once more, so that every exception has its words and its reason. All of
# Unicode is drawn; "printable" is what names and keys are, which no pattern can say of all of it.
CHECKS = r"""
import json
import re
import zoneinfo
from pathlib import Path

import jsonschema_rs
import schemathesis
from hypothesis import strategies
from schemathesis.specs.openapi import checks

# Valid by the document and refused all the same: what a refusal says, for a schema cannot say it.
REFUSED = {
    r"contains a NUL character": "of what a payload may hold the document says nothing: it is the handler's",
    r"is a whole number beyond 64 bits": "1e300 is a whole number to a schema, too, and is taken",
    r"^['\"].*: |the search has more than|beside a line that names it": "how a line is written is its own language",
    r"names another user|here are only the jobs of": "whose key it is that asks the document cannot know",
}
IN_QUERIES = {
    r"is no place in |the cursor is ": "a cursor is one that a page had",
    r"only failed jobs have a fingerprint": "no parameter can rule out another",
    r"id names jobs, and a filter was given besides": "nor all others at once",
    r"an entity is given by both": "nor need another",
}
LIMITED = {429: "limits and quotas hold for what is valid, too"}


def detail(response):
    try:
        return str(response.json().get("detail", ""))
    except ValueError:
        return ""


@schemathesis.check
def valid_is_accepted(ctx, response, case):
    try:
        return checks.positive_data_acceptance(ctx, response, case)
    except AssertionError:
        if response.status_code in LIMITED:
            return None
        known = REFUSED if case.method != "GET" else REFUSED | IN_QUERIES
        if response.status_code == 422 and any(re.search(words, detail(response)) for words in known):
            return None
        raise


@schemathesis.check
def invalid_is_refused(ctx, response, case):
    try:
        return checks.negative_data_rejection(ctx, response, case)
    except AssertionError:
        judge = JUDGES.get(case.operation.definition.raw.get("operationId"), lambda *_: False)
        if response.status_code == 414 or judge(case, response):  # too long an address is not read at all
            return None
        raise


DOCUMENT = json.loads(Path("openapi.json").read_text())


def fits(reference, value):
    schema = {"$ref": reference, "components": DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(schema).is_valid(value)


def each_is_judged(case, response):
    # What is wrong with one of many is told beside the others: each that does not fit is refused.
    jobs = case.body.get("jobs") if isinstance(case.body, dict) else None
    if not isinstance(jobs, list) or not 1 <= len(jobs) <= 1000 or set(case.body) != {"jobs"}:
        return False
    verdicts = [one["verdict"] for one in response.json()["items"]]
    return len(verdicts) == len(jobs) and all(
        verdict == "refused" or fits("#/components/schemas/Enqueue", job)
        for job, verdict in zip(jobs, verdicts, strict=True)
    )


JUDGES = {"enqueue_many": each_is_judged}


letters = strategies.characters(codec="utf-8").filter(str.isprintable)
names = strategies.text(letters, min_size=1, max_size=200).filter(lambda text: text == text.strip())
schemathesis.openapi.format("printable", names)
rules = ["* * * * *", "0 8 * * mon-fri", "*/15 9-17 1,15 jan-jun *", "30 2 L * *", "@daily", "0 0 29 2 *"]
schemathesis.openapi.format("cron", strategies.sampled_from(rules))
schemathesis.openapi.format("time-zone", strategies.sampled_from(sorted(zoneinfo.available_timezones())))
"""
SIGNED = "s" * 32
REVOKE = "revoke_key"
"""would end the key that asks: asked by a signed token, which is none, besides"""


@dataclass(frozen=True)
class Served:
    """A server with an application of two types."""

    home: Path
    url: str
    admin: str
    user: str
    streams: list[str]
    """operations whose answers do not end"""

    def asked(self, key: str | None, *options: str, examples: str = FEWER) -> str:
        """What Schemathesis reports; it fails where there is anything to report."""
        headers = [] if key is None else ["-H", f"Authorization: Bearer {key}"]
        known = ["--exclude-checks=positive_data_acceptance,negative_data_rejection"]  # ours stand in their place
        command = ["run", "openapi.json", "--url", self.url, *headers, *known, "--checks=all", "--no-color"]
        command += [
            "--seed=17",
            f"--max-examples={examples}",
            "--no-shrink",
            "--continue-on-failure",
            "--workers=1",
            "--warnings=off",
        ]
        # One worker: in Python 3.11 two threads that read source at once disturb each other (SystemError).
        done = subprocess.run(
            [str(Path(sys.executable).parent / "schemathesis"), *command, *options],
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-60_000:] + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served, None, None]:
    with serving_in(tmp_path_factory.mktemp("schemathesis")) as made:
        yield made


@contextmanager
def serving_in(home: Path) -> Generator[Served, None, None]:
    (home / "shop.py").write_text(APP)
    (home / "schemathesis.toml").write_text(CONFIG)
    (home / "checks.py").write_text(CHECKS)
    store = f"sqlite:///{home / 'shop.db'}"
    admin = key_at(store)
    user = key_at(store, owner="ann", scopes=("enqueue", "read", "operate"))
    with serving(home, "shop:app", environment={"WINDLASS_HTTP_JWT_SECRET": SIGNED}) as server:
        url = server.url
        document = httpx.get(f"{url}/openapi.json", headers={"Authorization": f"Bearer {admin}"}, timeout=60)
        found = document.json()
        operations = [one for methods in found["paths"].values() for one in methods.values()]
        streams = [one["operationId"] for one in operations if "text/event-stream" in str(one["responses"].get("200"))]
        for one in operations:  # a key that was given for another request is refused, and short ones are drawn twice
            one["parameters"] = [each for each in one.get("parameters", []) if each["name"] != "Idempotency-Key"]
        (home / "openapi.json").write_text(json.dumps(printable(found)))
        yield Served(home, url, admin, user, streams)


def printable(document: Any) -> Any:
    """The document with a format at names and keys, by which they are drawn."""
    if isinstance(document, list):
        return [printable(one) for one in cast("Sequence[Any]", document)]
    if not isinstance(document, dict):
        return document
    changed = {name: printable(one) for name, one in cast("dict[str, Any]", document).items()}
    if (
        MEDIA_TYPE in changed
    ):  # Schemathesis reads a stream's events; of this version's documents the schema is of all text
        text = {"type": "string"}
        changed[MEDIA_TYPE] = {
            "schema": {"properties": {"event": text, "data": text, "id": text}, "required": ["data"]}
        }
    return (
        {**changed, "format": "printable"} if changed.get("pattern") in (NAME["pattern"], KEY["pattern"]) else changed
    )


def left_out(*operations: str) -> list[str]:
    return [f"--exclude-operation-id={one}" for one in operations]


def asked_of(*operations: str) -> list[str]:
    return [f"--include-operation-id={one}" for one in operations]


@pytest.mark.timeout(600 if LONGER else 90)
def test_what_an_administrator_asks_is_answered_as_documented(served: Served) -> None:
    phases = "examples,coverage,fuzzing,stateful" if LONGER else "examples,fuzzing,stateful"
    options = [f"--phases={phases}", *left_out(REVOKE, *served.streams)]
    told = served.asked(served.admin, *options, examples=EXAMPLES)
    assert "Stateful" in told


@pytest.mark.timeout(600 if LONGER else 90)
def test_keys_are_made_and_revoked_as_documented(tmp_path: Path) -> None:
    """In a server of its own: every key that there is may be revoked."""
    claims = {"sub": "root", "scope": "admin", "exp": time.time() + 3600}
    token = jwt.encode(claims, SIGNED, "HS256")
    keys = asked_of("list_keys", "create_key", REVOKE)
    with serving_in(tmp_path) as own:
        own.asked(token, "--phases=examples,fuzzing,stateful", *keys, examples=EXAMPLES)
        listed = httpx.get(f"{own.url}/api/v1/keys", headers={"Authorization": f"Bearer {token}"}).json()["items"]
    assert any(one["revokedAt"] for one in listed)


@pytest.mark.timeout(600 if LONGER else 90)
def test_streams_refuse_what_the_document_does_not_allow(served: Served) -> None:
    """Those that are opened do not end: what they say is tested in `live`."""
    assert len(served.streams) == 2
    phases = "--phases=coverage,fuzzing" if LONGER else "--phases=fuzzing"
    # Some that are drawn are valid nevertheless, and open a stream that is read until this time is over.
    served.asked(served.user, phases, "--mode=negative", "--request-timeout=2", *asked_of(*served.streams))


@pytest.mark.timeout(600 if LONGER else 90)
def test_what_a_user_asks_is_answered_as_documented(served: Served) -> None:
    served.asked(served.user, "--phases=examples,fuzzing", *left_out(REVOKE, *served.streams))


@pytest.mark.timeout(600 if LONGER else 90)
def test_what_nobody_asks_is_refused_as_documented(served: Served) -> None:
    told = served.asked(None, "--phases=examples,fuzzing", "--exclude-checks=valid_is_accepted")
    assert "Fuzzing" in told
