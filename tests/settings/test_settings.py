from __future__ import annotations

from base64 import b64decode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from windlass import SettingsError, Windlass
from windlass.settings import Settings, check_namespace, load

SECOND = timedelta(seconds=1)
GOOD: dict[str, tuple[str, str, Any]] = {
    "WINDLASS_URL": ("url", "sqlite:///x.db", "sqlite:///x.db"),
    "WINDLASS_STORE": ("url", "sqlite:///x.db", "sqlite:///x.db"),
    "WINDLASS_NAMESPACE": ("namespace", "shop_2", "shop_2"),
    "WINDLASS_APP": ("app", "shop.jobs:app", "shop.jobs:app"),
    "WINDLASS_ACTOR": ("actor", "ops", "ops"),
    "WINDLASS_CONCURRENCY": ("concurrency", "7", 7),
    "QUEUE_CONCURRENCY": ("concurrency", "7", 7),
    "WINDLASS_LEASE_MS": ("lease", "1000", SECOND),
    "QUEUE_VISIBILITY_MS": ("lease", "1000", SECOND),
    "QUEUE_STUCK_THRESHOLD_MS": ("lease", "1000", SECOND),
    "WINDLASS_HEARTBEAT_MS": ("heartbeat", "1000", SECOND),
    "QUEUE_HEARTBEAT_MS": ("heartbeat", "1000", SECOND),
    "WINDLASS_POLL_MS": ("poll", "1000", SECOND),
    "QUEUE_POLL_MS": ("poll", "1000", SECOND),
    "WINDLASS_RESCUE_MS": ("rescue", "1000", SECOND),
    "WINDLASS_GRACE_MS": ("grace", "0", timedelta(0)),
    "WINDLASS_MAX_ATTEMPTS": ("max_attempts", "9", 9),
    "QUEUE_MAX_ATTEMPTS": ("max_attempts", "9", 9),
    "MAX_RETRY_ATTEMPTS": ("max_attempts", "9", 9),
    "WINDLASS_RETRY_DELAY_MS": ("retry_delay", "1000", SECOND),
    "RETRY_DELAY": ("retry_delay", "1000", SECOND),
    "WINDLASS_SECRET_KEYS": ("secret_keys", f"{'A' * 43}, {'B' * 42}A=", (bytes(32), b64decode("B" * 42 + "A="))),
    "WINDLASS_IDEMPOTENCY_MS": ("idempotency", "60000", 60 * SECOND),
    "WINDLASS_HTTP_DASHBOARD": ("http_dashboard", "off", False),
    "WINDLASS_HTTP_HOSTS": ("http_hosts", "jobs.example, [::1]:8000", ("jobs.example", "[::1]:8000")),
    "WINDLASS_HTTP_ORIGINS": ("http_origins", "https://shop.example", ("https://shop.example",)),
    "WINDLASS_HTTP_PROXIES": ("http_proxies", "10.0.0.0/8,10.1.0.7", ("10.0.0.0/8", "10.1.0.7")),
    "WINDLASS_HTTP_RATE": ("http_rate", "0", 0),
    "WINDLASS_HTTP_ADDRESS_RATE": ("http_address_rate", "7", 7),
    "WINDLASS_HTTP_QUOTA": ("http_quota", "9", 9),
    "WINDLASS_HTTP_PROXY_USER": ("http_proxy_user", "X-User", "X-User"),
    "WINDLASS_HTTP_PROXY_SCOPES": ("http_proxy_scopes", "X-Scopes", "X-Scopes"),
    "WINDLASS_HTTP_PROXY_USUAL": ("http_proxy_usual", "read", ("read",)),
    "WINDLASS_HTTP_JWT_SECRET": ("http_jwt_secret", "s" * 32, "s" * 32),
    "WINDLASS_METRICS_TOKEN": ("metrics_token", "s" * 32, "s" * 32),
    "WINDLASS_HTTP_JWT_JWKS": ("http_jwt_jwks", "https://id.example/keys", "https://id.example/keys"),
    "WINDLASS_HTTP_JWT_ALGORITHMS": ("http_jwt_algorithms", "ES256", ("ES256",)),
    "WINDLASS_HTTP_JWT_ISSUER": ("http_jwt_issuer", "id", "id"),
    "WINDLASS_HTTP_JWT_AUDIENCE": ("http_jwt_audience", "jobs", "jobs"),
    "WINDLASS_HTTP_JWT_LEEWAY_MS": ("http_jwt_leeway", "1000", SECOND),
    "WINDLASS_HTTP_JWT_USER": ("http_jwt_user", "a.b", "a.b"),
    "WINDLASS_HTTP_JWT_SCOPES": ("http_jwt_scopes", "roles", "roles"),
    "WINDLASS_HTTP_JWT_USUAL": ("http_jwt_usual", "read", ("read",)),
    "WINDLASS_HTTP_JWT_ATTRIBUTES": ("http_jwt_attributes", "premium", ("premium",)),
    "WINDLASS_HTTP_TRACEPARENT": ("http_traceparent", "on", True),
    "WINDLASS_TRACING": ("tracing", "ON", True),
    "WINDLASS_SYNCHRONOUS": ("synchronous", "normal", "NORMAL"),
    "WINDLASS_LOG_FORMAT": ("log_format", "JSON", "json"),
    "WINDLASS_STATSD": ("statsd", "udp://localhost", "udp://localhost"),
    "WINDLASS_LOG_LEVEL": ("log_level", "debug", "debug"),
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", GOOD)
def test_each_variable_sets_its_setting(name: str) -> None:
    field, text, value = GOOD[name]
    assert getattr(load({name: text}), field) == value


def test_every_setting_has_a_variable() -> None:
    assert {field for field, _, _ in GOOD.values()} == set(Settings.__dataclass_fields__)


def test_nothing_set_is_the_defaults() -> None:
    assert load({}) == Settings()
    assert (Settings().lease, Settings().heartbeat, Settings().poll) == (30 * SECOND, 10 * SECOND, 5 * SECOND)
    assert (Settings().concurrency, Settings().max_attempts, Settings().url) == (20, 5, "sqlite:///windlass.db")


def test_windlasss_own_names_win_over_the_aliases() -> None:
    assert load({"QUEUE_CONCURRENCY": "1", "WINDLASS_CONCURRENCY": "2"}).concurrency == 2
    assert load({"QUEUE_STUCK_THRESHOLD_MS": "1000", "QUEUE_VISIBILITY_MS": "2000"}).lease == 2 * SECOND


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WINDLASS_URL", ""),
        ("WINDLASS_NAMESPACE", "Shop"),
        ("WINDLASS_NAMESPACE", "a-b"),
        ("WINDLASS_NAMESPACE", "x" * 31),
        ("WINDLASS_NAMESPACE", "1a"),
        ("WINDLASS_CONCURRENCY", "0"),
        ("WINDLASS_CONCURRENCY", "many"),
        ("WINDLASS_CONCURRENCY", "1.5"),
        ("WINDLASS_CONCURRENCY", ""),
        ("QUEUE_CONCURRENCY", "10001"),
        ("QUEUE_VISIBILITY_MS", "99"),
        ("WINDLASS_LEASE_MS", "86400001"),
        ("QUEUE_POLL_MS", "-5"),
        ("WINDLASS_MAX_ATTEMPTS", "0"),
        ("WINDLASS_SYNCHRONOUS", "OFF"),
        ("WINDLASS_CONCURRENCY", "9" * 5000),
    ],
)
def test_a_bad_value_is_told_with_its_name_its_value_and_the_range(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({name: value})
    told = str(caught.value)
    assert name in told
    assert repr(value[:80])[1:-1] in told
    assert "expected" in told
    assert len(told) < 300


def test_a_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "windlass.toml").write_text(
        'url = "sqlite:///f.db"\nconcurrency = 3\nlease_ms = 2000\nnamespace = "n"\n'
    )
    found = load({"WINDLASS_CONCURRENCY": "4"})
    assert (found.url, found.concurrency, found.lease, found.namespace) == ("sqlite:///f.db", 4, 2 * SECOND, "n")


def test_another_file_may_be_named(tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("concurrency = 5")
    assert load({"WINDLASS_FILE": str(other)}).concurrency == 5
    assert load({}, other).concurrency == 5


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone\.toml does not exist"):
        load({"WINDLASS_FILE": "gone.toml"})
    with pytest.raises(SettingsError, match=r"gone\.toml does not exist"):
        load({}, tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("colour = 1", "colour"),
        ("concurrency = ", "cannot be read"),
        ("concurrency = true", "concurrency"),
        ("concurrency = 1.5", "concurrency"),
        ("concurrency = 0", "1 to 10000"),
        ('url = ["a"]', "url"),
        ("[url]\na = 1", "url"),
        ("\ufeffx", "cannot be read"),
    ],
)
def test_a_bad_file_is_told_with_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "windlass.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=words) as caught:
        load({})
    assert "windlass.toml" in str(caught.value)


def test_a_file_that_is_no_text_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "windlass.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="cannot be read"):
        load({})


def test_what_is_given_in_code_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_URL", "sqlite:///from-outside.db")
    monkeypatch.setenv("WINDLASS_NAMESPACE", "outside")
    monkeypatch.setenv("WINDLASS_MAX_ATTEMPTS", "9")
    outside, inside = Windlass(), Windlass("sqlite:///inside.db", namespace="inside")
    assert (outside.url, outside.namespace, outside.defaults.max_attempts) == (
        "sqlite:///from-outside.db",
        "outside",
        9,
    )
    assert (inside.url, inside.namespace) == ("sqlite:///inside.db", "inside")
    assert inside.worker(concurrency=3).config.concurrency == 3
    monkeypatch.setenv("QUEUE_CONCURRENCY", "4")
    assert Windlass().worker().config.concurrency == 4


@pytest.mark.parametrize("wrong", ["", "Shop", "a b", "a;--", "é", "x" * 31])
def test_a_namespace_is_a_plain_name(wrong: str) -> None:
    with pytest.raises(SettingsError):
        check_namespace(wrong)


def test_keys_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"# since May\n{'A' * 43}  # the newest\n\n{'B' * 42}A\n")
    keys = load({"WINDLASS_SECRET_KEYS_FILE": str(tmp_path / "keys")}).secret_keys
    assert keys == (bytes(32), b64decode("B" * 42 + "A="))
    with pytest.raises(SettingsError, match="choose one"):
        load({"WINDLASS_SECRET_KEYS_FILE": str(tmp_path / "keys"), "WINDLASS_SECRET_KEYS": "A" * 43})
    with pytest.raises(SettingsError, match=r"gone cannot be read"):
        load({"WINDLASS_SECRET_KEYS_FILE": str(tmp_path / "gone")})


@pytest.mark.parametrize("text", ["", "canary", "A" * 42, "A" * 43 + "," + "A" * 43, "A" * 43 + " canary"])
def test_keys_that_are_none_are_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(SettingsError, match=r"WINDLASS_SECRET_KEYS is \d+ characters") as refused:
        load({"WINDLASS_SECRET_KEYS": text})
    assert "canary" not in str(refused.value)
    with pytest.raises(SettingsError) as refused:
        Windlass("sqlite:///x.db", secret_keys=[text])
    assert "canary" not in str(refused.value)


def test_keys_are_not_in_the_settings_as_text() -> None:
    assert "secret_keys" not in repr(load({"WINDLASS_SECRET_KEYS": "A" * 43}))
