from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import SettingsError
from windlass.core.unique import IDEMPOTENCY_WINDOW, Unique, idempotency_key, idempotency_window
from windlass.core.values import canonical

documents = st.dictionaries(st.text(st.characters(exclude_categories=["C"])), st.integers(-(2**63), 2**63 - 1))


def test_one_text_is_the_key_of_both_phases() -> None:
    assert Unique.of("receipt:42") == Unique(queued="receipt:42", running="receipt:42")


def test_unique_keys_may_differ_or_be_for_one_phase_only() -> None:
    assert Unique(queued="q:1", running="r:1") != Unique(queued="q:1")
    assert Unique(running="r:1").queued is None


def test_what_is_unique_already_stays_and_nothing_is_nothing() -> None:
    unique = Unique(queued="q:1")
    assert Unique.of(unique) is unique
    assert Unique.of(None) is None


def test_unique_without_a_key_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"give at least one"):
        Unique()


@pytest.mark.parametrize("value", [5, True, ["a"], b"a"])
def test_unique_of_anything_but_text_is_refused(value: Any) -> None:
    with pytest.raises(SettingsError, match=r"unique is .*: expected text or Unique"):
        Unique.of(value)


@pytest.mark.parametrize("key", ["", "a\x00", "a" * 513, 5])
def test_a_unique_key_that_no_store_could_hold_is_refused(key: Any) -> None:
    with pytest.raises(SettingsError, match=r"the unique key is"):
        Unique(queued=key)
    with pytest.raises(SettingsError, match=r"the unique running key is"):
        Unique(running=key)


def test_an_idempotency_key_is_the_sha256_of_type_and_payload() -> None:
    assert idempotency_key("mail", "{}") == hashlib.sha256(b"mail\n{}").hexdigest()


@given(documents, st.randoms())
def test_the_order_of_members_makes_no_other_idempotency_key(document: dict[str, int], random: Any) -> None:
    names = list(document)
    random.shuffle(names)
    shuffled = {name: document[name] for name in names}
    assert idempotency_key("mail", canonical(document)) == idempotency_key("mail", canonical(shuffled))


@given(documents, documents)
def test_another_payload_or_another_type_is_another_idempotency_key(one: dict[str, int], other: dict[str, int]) -> None:
    keys = {idempotency_key(type_, canonical(payload)) for type_ in ("a", "b") for payload in (one, other)}
    assert len(keys) == (2 if one == other else 4)


def test_idempotent_is_a_day_a_time_or_not_at_all() -> None:
    assert idempotency_window(True) == IDEMPOTENCY_WINDOW == timedelta(days=1)
    assert idempotency_window(False) is None
    assert idempotency_window(None) is None
    assert idempotency_window(90) == timedelta(seconds=90)
    assert idempotency_window(timedelta(hours=1)) == timedelta(hours=1)


@pytest.mark.parametrize("value", [-1, float("nan"), "day"])
def test_a_window_that_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(SettingsError, match=r"idempotent is"):
        idempotency_window(value)
