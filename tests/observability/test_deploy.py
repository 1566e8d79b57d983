"""What ships for Prometheus and Grafana: rules that promtool finds right, metrics that exist, an alert that fires."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import yaml  # type: ignore[import-untyped]  # it has no types

from tests.cli.support import SHOP, Shop
from tests.support.processes import free_ports
from tests.support.until import until_sync
from windlass.observability.prometheus import METRICS

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES, TESTS = DEPLOY / "prometheus" / "windlass-alerts.yml", DEPLOY / "prometheus" / "windlass-alerts.test.yml"
DASHBOARD = DEPLOY / "grafana" / "windlass.json"
COMPOSE = DEPLOY.parent / "compose.yaml"
ALERTS: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
ASKED_FOR = {
    *("FailureRateHigh", "OldestWaitingGrows", "NoWorkerForType", "NotifierUnhealthy", "DeadLettersGrow"),
    *("LateResultsRefused", "LeasesLost"),
}


def program(name: str) -> str:
    """Where Debian's package prometheus has put it."""
    found = shutil.which(name)
    assert found is not None, f"{name} is missing: script/setup gets it, with Debian's package prometheus"
    return found


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\bwindlass_\w+", text))


def known() -> set[str]:
    """As series are called."""
    more = {f"{one.name}_{end}" for one in METRICS if one.kind == "histogram" for end in ("bucket", "count", "sum")}
    return {one.name for one in METRICS} | more


def texts(value: object) -> Iterator[str]:
    """Every expression and query of a dashboard, however deep."""
    if isinstance(value, dict):
        for member in cast("dict[str, object]", value).values():
            yield from texts(member)
    elif isinstance(value, list):
        for member in cast("list[object]", value):
            yield from texts(member)
    elif isinstance(value, str):
        yield value


def test_promtool_finds_the_rules_right_and_they_fire_when_they_should() -> None:
    for command in (
        ["check", "rules", RULES],
        ["test", "rules", TESTS],
        ["check", "config", RULES.with_name("prometheus.yml")],
    ):
        done = subprocess.run([program("promtool"), *map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_says_what_it_means_and_what_to_do_and_is_tested() -> None:
    names = {alert["alert"] for alert in ALERTS}
    assert names >= {f"Windlass{one}" for one in ASKED_FOR}
    for alert in ALERTS:
        assert set(alert["annotations"]) == {"summary", "description", "action"}, alert["alert"]
        assert alert["labels"]["severity"] in {"warning", "critical"}
        assert alert["alert"] in TESTS.read_text()
    page = (DEPLOY.parent / "docs" / "metrics.md").read_text()
    assert set(re.findall(r"^\| `(Windlass\w+)` \|", page, re.MULTILINE)) == names


def test_every_metric_that_rules_and_dashboard_name_exists() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    used = names_in(" ".join(texts(dashboard)))
    assert used <= known(), used - known()
    for alert in ALERTS:
        assert names_in(alert["expr"]), alert["alert"]
        assert names_in(alert["expr"]) <= known(), names_in(alert["expr"]) - known()
    for series in re.findall(r"series: '(\w+)", TESTS.read_text()):
        assert series in known(), series


def test_every_panel_has_a_unit_and_words() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in panels:
        assert panel["description"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert panel["type"] == "stat" or target["legendFormat"], panel["title"]


def test_what_compose_brings_is_there() -> None:
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    watching = {name: one for name, one in services.items() if one.get("profiles") == ["observability"]}
    assert watching.keys() == {"prometheus", "grafana", "jaeger"}
    for one in watching.values():
        for volume in one.get("volumes", ()):
            assert (COMPOSE.parent / volume.split(":")[0]).exists(), volume
        assert one.get("network_mode") == "host" or all(port.startswith("127.0.0.1:") for port in one["ports"])


def test_addresses_fit_together() -> None:
    """What is in one file is meant by another: who scrapes whom, what Grafana asks, and what the pages say."""
    compose = COMPOSE.read_text()
    services = yaml.safe_load(compose)["services"]
    provisioning = DEPLOY / "grafana" / "provisioning"
    datasources = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    urls = {one["type"]: one["url"] for one in datasources}
    flags = dict(one.removeprefix("--").split("=", 1) for one in services["prometheus"]["command"])
    mounted = {volume.split(":")[1]: COMPOSE.parent / volume.split(":")[0] for volume in volumes(services)}
    assert urls["prometheus"] == f"http://{flags['web.listen-address']}"
    assert f"{urls['jaeger'].removeprefix('http://')}:16686" in services["jaeger"]["ports"]
    assert (mounted["/etc/prometheus"] / Path(flags["config.file"]).name).is_file()
    [provider] = yaml.safe_load((provisioning / "dashboards" / "windlass.yml").read_text())["providers"]
    assert mounted[f"{provider['options']['path']}/{DASHBOARD.name}"] == DASHBOARD
    assert mounted["/etc/grafana/provisioning"] == provisioning

    config = yaml.safe_load((RULES.parent / "prometheus.yml").read_text())
    assert config["rule_files"] == [RULES.name]
    [scraped] = config["scrape_configs"]
    [target] = scraped["static_configs"][0]["targets"]
    page, traces = ((DEPLOY.parent / "docs" / name).read_text() for name in ("metrics.md", "tracing.md"))
    assert f"--metrics-port {target.rpartition(':')[2]}" in page
    grafana = services["grafana"]["environment"]
    for url in (urls["prometheus"], urls["jaeger"], f"http://127.0.0.1:{grafana['GF_SERVER_HTTP_PORT']}"):
        assert f"<{url}>" in page
    [otlp] = re.findall(r"OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:(\d+)", traces)
    assert f"127.0.0.1:{otlp}:{otlp}" in services["jaeger"]["ports"]
    assert f"<http://127.0.0.1:{otlp}>" in page


def volumes(services: dict[str, Any]) -> Iterator[str]:
    for one in services.values():
        yield from one.get("volumes", ())


@pytest.fixture
def shop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Shop]:
    (tmp_path / "shop.py").write_text(SHOP)
    made = Shop(tmp_path, capsys)
    yield made
    made.end()


@pytest.mark.timeout(60)
def test_prometheus_reads_a_worker_and_the_alert_fires(shop: Shop) -> None:
    worker_port, port = free_ports(2)
    rules = yaml.safe_load(RULES.read_text())
    for alert in rules["groups"][0]["rules"]:
        alert["for"] = "0s"
    (shop.home / "rules.yml").write_text(yaml.safe_dump(rules))
    (shop.home / "prometheus.yml").write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
                "rule_files": ["rules.yml"],
                "scrape_configs": [
                    {"job_name": "workers", "static_configs": [{"targets": [f"127.0.0.1:{worker_port}"]}]}
                ],
            }
        )
    )
    shop.ok("enqueue", "endless")
    words = ("--poll", "100ms", "--exclude", "endless", "--exclude", "typo")
    worker = shop.start("worker", "shop:app", "--metrics-port", str(worker_port), *words)
    shop.says("ready")
    with (shop.home / "prometheus.log").open("w") as log:
        prometheus = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={shop.home / 'prometheus.yml'}",
                f"--storage.tsdb.path={shop.home / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1") as ask:
            until_sync(lambda: queried(ask, "windlass_store_up == 1"), "the worker to be scraped", within=20)
            until_sync(
                lambda: queried(ask, 'windlass_jobs_ended_total{type="bad"} == 0'), "a 0 before the first failure"
            )
            until_sync(lambda: firing(ask) == {"WindlassNoWorkerForType endless"}, "what nobody handles to be told")
            for _ in range(8):
                shop.ok("enqueue", "bad")
            both = {"WindlassFailureRateHigh bad", "WindlassNoWorkerForType endless"}
            until_sync(lambda: firing(ask) == both, "the alert to fire", within=20)
            until_sync(lambda: not set(empty_panels(ask)), "every panel to have something to show", within=10)
            worker.send_signal(signal.SIGTERM)
            until_sync(lambda: "WindlassNoWorkers" in firing(ask), "the end of the last worker to be told", within=20)
    finally:
        prometheus.terminate()
        prometheus.wait(10)


def empty_panels(ask: httpx.Client) -> Iterator[str]:
    """Those of the dashboard for which Prometheus finds nothing; each query has to be one."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            query = re.sub(r"\$(job|type|queue)\b", ".*", target["expr"]).replace("$__rate_interval", "5s")
            assert "$" not in query, query
            answer = ask.get("/query", params={"query": query})
            assert answer.status_code == 200, f"{panel['title']}: {answer.text}"
            if not answer.json()["data"]["result"]:
                yield panel["title"]


def queried(ask: httpx.Client, query: str) -> list[Any]:
    try:
        answer = ask.get("/query", params={"query": query})
    except httpx.TransportError:  # it is still starting
        return []
    return list(answer.json()["data"]["result"]) if answer.status_code == 200 else []


def firing(ask: httpx.Client) -> set[str]:
    alerts = ask.get("/alerts").json()["data"]["alerts"]
    return {
        f"{one['labels']['alertname']} {one['labels'].get('type', '')}".strip()
        for one in alerts
        if one["state"] == "firing"
    }
