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
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.support.serving import key_at, serving

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
# Where one member rules out another, or a cursor has to be one of ours, JSON Schema cannot say so: what is valid by the
# document may be refused there. Text is drawn from Latin-1: that a name is printable cannot be said of all of Unicode.
CONFIG = """
[generation]
codec = "latin-1"

[phases.coverage]
unexpected-methods = ["PATCH"]

[[operations]]
include-operation-id = "enqueue_many" # what is wrong with one of many is told beside the others
checks.negative_data_rejection.expected-statuses = [200, 201, 400, 401, 403, 404, 409, 422, 429]
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 422, 429]

[[operations]]
include-operation-id = ["enqueue_job", "list_jobs", "list_audit", "order_jobs", "put_schedule"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 422, 429]
"""
NOT_ASKED = ["revoke_key"]
"""it would end the key that asks"""


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
        left_out = [f"--exclude-operation-id={one}" for one in [*NOT_ASKED, *self.streams]]
        command = ["run", "openapi.json", "--url", self.url, *headers, *left_out, "--checks=all", "--no-color"]
        command += ["--seed=17", f"--max-examples={examples}", "--no-shrink", "--workers=1", "--warnings=off"]
        # One worker: in Python 3.11 two threads that read source at once disturb each other (SystemError).
        done = subprocess.run(
            [str(Path(sys.executable).parent / "schemathesis"), *command, *options],
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served, None, None]:
    home = tmp_path_factory.mktemp("schemathesis")
    (home / "shop.py").write_text(APP)
    (home / "schemathesis.toml").write_text(CONFIG)
    store = f"sqlite:///{home / 'shop.db'}"
    admin = key_at(store)
    user = key_at(store, owner="ann", scopes=("enqueue", "read", "operate"))
    with serving(home, "shop:app") as server:
        url = server.url
        document = httpx.get(f"{url}/openapi.json", headers={"Authorization": f"Bearer {admin}"})
        found = document.json()
        operations = [one for methods in found["paths"].values() for one in methods.values()]
        streams = [one["operationId"] for one in operations if "text/event-stream" in str(one["responses"].get("200"))]
        for one in operations:  # a key that was given for another request is refused, and short ones are drawn twice
            one["parameters"] = [each for each in one.get("parameters", []) if each["name"] != "Idempotency-Key"]
        (home / "openapi.json").write_text(json.dumps(found))
        yield Served(home, url, admin, user, streams)


@pytest.mark.timeout(600 if LONGER else 90)
def test_what_an_administrator_asks_is_answered_as_documented(served: Served) -> None:
    phases = "examples,coverage,fuzzing,stateful" if LONGER else "examples,fuzzing,stateful"
    told = served.asked(served.admin, f"--phases={phases}", examples=EXAMPLES)
    assert "Stateful" in told


@pytest.mark.timeout(600 if LONGER else 90)
def test_what_a_user_asks_is_answered_as_documented(served: Served) -> None:
    served.asked(served.user, "--phases=examples,fuzzing")


@pytest.mark.timeout(600 if LONGER else 90)
def test_what_nobody_asks_is_refused_as_documented(served: Served) -> None:
    told = served.asked(None, "--phases=examples,fuzzing", "--exclude-checks=positive_data_acceptance")
    assert "Fuzzing" in told
