"""Reading: JSON from outside, without losing anything of it on the way: no digits, no member that is given twice."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from windlass.core.errors import PayloadInvalid
from windlass.core.keys import shown
from windlass.core.values import inspect
from windlass.web.measuring import measure
from windlass.web.problems import INVALID, UNREADABLE, Refused


def strict(body: bytes) -> Any:
    """The values of a body. Whole numbers keep all their digits.

    What is no JSON is refused as unreadable. A member that is given twice, of which readers take now the first, now the
    last, is refused as invalid; so are text that no store can keep, and what is deeper or wider than an honest body.
    """
    measure(body)
    try:
        text = body.decode()
        value = json.loads(text, object_pairs_hook=_members, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise Refused(UNREADABLE, "the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise Refused(UNREADABLE, f"the body is not JSON: {error.msg} (line {error.lineno})") from None
    except RecursionError:
        raise Refused(UNREADABLE, "the body is nested too deeply") from None
    except ValueError:
        raise Refused(UNREADABLE, "the body has a number of thousands of digits") from None
    if "\\u" in text:  # only an escape can stand for NUL or half of a character
        try:
            inspect(value, "the body", ())
        except PayloadInvalid as error:
            raise Refused(INVALID, str(error)) from None
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise Refused(INVALID, f"the member {shown(twice)} is given twice in one object")
    return value


def _no_constant(name: str) -> Any:
    raise Refused(INVALID, f"{name} is not a JSON number")
