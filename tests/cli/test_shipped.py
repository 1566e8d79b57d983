"""Without an application, `worker` and `serve` run the applications that ship."""

from __future__ import annotations

import re
import signal

import httpx
import pytest

from tests.apps.imports.workbooks import CUSTOMERS, customers, workbook
from tests.cli.support import Shop
from tests.support.until import until_sync

pytestmark = pytest.mark.timeout(60)


def test_a_worker_without_an_application_runs_what_ships(shop: Shop) -> None:
    child = shop.start("--store", shop.url, "worker")
    shop.says("ready")
    for type_ in ("import.xlsx.ap", "import.xlsx.budgetForecast", "import.xlsx.customers"):
        assert type_ in shop.log
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) == 0


def test_what_is_served_without_an_application_imports_a_spreadsheet(shop: Shop) -> None:
    child = shop.start("--store", shop.url, "serve", "--port", "0", "--worker")
    until_sync(lambda: "/api/v1" in shop.log, "the server to say where it is", within=30)
    [url], [secret] = re.findall(r"http://\S+/api/v1", shop.log), re.findall(r"wl_[0-9a-f]{12}_\S+", shop.log)
    file = workbook(shop.home / "c.xlsx", [CUSTOMERS, *customers(5), ("bad", "Eve")])
    files = {"file": (file.name, file.read_bytes())}
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=20) as client:
        sent = client.post("/imports/xlsx/upload", data={"type": "customers"}, files=files)
        assert sent.status_code == 202, sent.text
        path = f"/imports/{sent.json()['jobId']}"
        until_sync(lambda: client.get(path).json().get("result") is not None, "the import to end", within=20)
        result = client.get(path).json()["result"]
        assert (result["inserted"], result["failed"]) == (5, 1)
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) == 0
