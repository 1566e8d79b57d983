from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from windlass.observability.plain import plain, short


def test_controls_become_visible_marks() -> None:
    assert plain("a\x1b[31mb\x07\x00\x9b\u202ec\ud800") == "a\ufffd[31mb\ufffd\ufffd\ufffd\ufffdc\ufffd"
    assert plain("one\r\ntwo\tthree\n") == "one two three "
    assert plain("one\n\ttwo\x1b", lines=True) == "one\n    two\ufffd"
    assert plain("naïve 日本 👩‍💻") == "naïve 日本 👩‍💻"


@given(st.text(alphabet=st.characters(categories=("Cc", "Cf", "Cs", "Zl", "Zp", "L", "N"))))
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    left = plain(text)
    assert all(unicodedata.category(one) not in ("Cc", "Cs", "Zl", "Zp") for one in left)
    assert not set(left) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert plain(left) == left


def test_short_cuts_with_a_mark() -> None:
    assert short("abcdef", 4) == "abc…"
    assert short("abc", 4) == "abc"
