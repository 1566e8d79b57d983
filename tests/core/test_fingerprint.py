from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.fingerprint import fingerprint, is_fingerprint, normalised
from windlass.core.job import Error


def error(message: str, type_: str = "ValueError", function: str | None = "send", line: int = 3) -> Error:
    trace = (
        None
        if function is None
        else (
            "Traceback (most recent call last):\n"
            '  File "/srv/windlass/worker.py", line 80, in run\n    await call\n'
            f'  File "/srv/shop/jobs.py", line {line}, in {function}\n    raise\n    ^^^^^\nValueError: no\n'
        )
    )
    return Error(type=type_, message=message, traceback=trace)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 42 is gone", "order 7 is gone"),
        ("took 1.5 s of 30", "took 12,000.25 s of 60"),
        ("at 2026-11-30 09:00:01", "at 2027-01-02 23:59:59"),
        (
            "job 0190a3c4-5d6e-7f80-9123-456789abcdef failed",
            "job ffffffff-5d6e-7f80-9123-456789abcde0 failed",
        ),
        ("<Order object at 0x7f3a2c>", "<Order object at 0xDEADBEEF01>"),
        ("commit 9fceb02d0ae598e9 unknown", "commit 0000000a unknown"),
        ("no such key: 'ada'", "no such key: 'grace hopper'"),
        ('no such key: "ada"', 'no such key: "it\'s"'),
        ("cannot open /srv/files/a.csv", "cannot open /tmp/b"),
        ("cannot open C:\\files\\a.csv", "cannot open D:\\b.csv"),
        ("cannot open ./a/b", "cannot open ~/c"),
        ("GET http://shop.example/orders?x=1 refused", "GET https://other.example/ refused"),
        ("two\nlines", "two lines "),
    ],
)
def test_what_differs_between_two_failures_of_one_kind_does_not_count(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)
    assert fingerprint("send", error(one)) == fingerprint("send", error(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order is gone", "order is late"),
        ("can't open and won't try", "can't read and won't try"),
        ("either/or", "either"),
        ("bad face", "bad feed"),
    ],
)
def test_other_words_are_other_failures(one: str, other: str) -> None:
    assert fingerprint("send", error(one)) != fingerprint("send", error(other))


def test_type_of_job_type_of_error_and_function_count_but_lines_do_not() -> None:
    same = fingerprint("send", error("no"))
    assert fingerprint("send", error("no", line=99)) == same
    assert fingerprint("fetch", error("no")) != same
    assert fingerprint("send", error("no", "KeyError")) != same
    assert fingerprint("send", error("no", function="open")) != same
    assert fingerprint("send", error("no", function=None)) != same
    assert fingerprint("send", None) != fingerprint("fetch", None)


def test_only_its_own_form_is_a_fingerprint() -> None:
    assert is_fingerprint(fingerprint("send", None))
    assert not any(is_fingerprint(one) for one in ("", "xyz", "0" * 11, "0" * 13, "A" * 12, None, 3))


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_has_a_fingerprint_that_stays(message: str, trace: str) -> None:
    found = fingerprint("send", Error(type="E", message=message, traceback=trace))
    assert is_fingerprint(found)
    assert found == fingerprint("send", Error(type="E", message=message, traceback=trace))


@pytest.mark.parametrize("part", ["'", "/a", "0", "a0", "'a", "/", "http://", "\\", "1.", "- ", "0190a3c4-"])
def test_a_hostile_message_is_read_in_no_time(part: str) -> None:
    began = time.process_time()
    fingerprint("send", Error(type="E", message=part * 4_000, traceback=f'File "{part * 8_000}'))
    assert time.process_time() - began < 0.5
