"""Measuring: how deep and how wide a body is, before anything is made of it."""

from __future__ import annotations

import re

from windlass.web.problems import INVALID, Refused

DEEPEST = 70
"""levels: a payload may have 64, and stands in a few of the request's own"""
MOST_VALUES = 50_000
"""members and elements of a whole body"""
LONGEST_NUMBER = 1_000
"""digits"""

# Always matches what begins with a quote, and never looks at a byte twice: what is cut in a string cannot make it slow.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NUMBER = re.compile(rb"[0-9]{%d}" % (LONGEST_NUMBER + 1))
_BRACKET = re.compile(rb"[\[\]{}]")
_OPENING = (b"[", b"{")


def measure(body: bytes) -> None:
    """Refuse what is deeper or wider than any honest body, or has a number that nobody can mean.

    Whether it is JSON at all is for its reader to say; so is what a string has in it, of which nothing counts here.
    """
    bare = _STRING.sub(b"", body)
    if bare.count(b",") + sum(bare.count(one) for one in _OPENING) > MOST_VALUES:
        raise Refused(INVALID, f"the body has more than {MOST_VALUES:,} values: send less in one request")
    depth = 0
    for found in _BRACKET.finditer(bare):
        depth += 1 if found.group() in _OPENING else -1
        if depth > DEEPEST:
            raise Refused(INVALID, f"the body has more than {DEEPEST} levels")
    if _NUMBER.search(bare):
        raise Refused(INVALID, f"the body has a number of more than {LONGEST_NUMBER:,} digits: send it as text")
