"""The structurer that asks a model: it is not trusted. What it tells is checked, and the rules stand behind it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from windlass import Retry
from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.resume import Resume
from windlass.apps.resumes.structuring.endpoints import Endpoint, Refused, Unreachable, endpoint_of
from windlass.apps.resumes.structuring.evidence import Evidence
from windlass.apps.resumes.structuring.models import Answer, ModelSettings, question
from windlass.apps.resumes.structuring.rules import Rules
from windlass.apps.resumes.structuring.structurer import Structured, Structurer

_ASKED = 2
"""times, where an answer is no resume"""
_REMEMBERED = 1_000
_MENDED = 200
"""values of one answer that may be of the wrong form, each of which is dropped"""
_FENCE = re.compile(r"^\s*```(?:json)?\s*|\s*```\s*$")


class ModelStructurer:
    """Structures by a model; what it tells and the document does not say is dropped and counted.

    An endpoint that is away or busy is a Retry, as often as the settings say; then, and where answers are no
    resumes, the rules do it, and the answer tells why. With `last` nothing is put off.
    """

    def __init__(self, settings: ModelSettings, *, behind: Structurer | None = None) -> None:
        self._settings = settings
        self._behind: Structurer = behind if behind is not None else Rules()
        self._endpoint: Endpoint = endpoint_of(settings)
        self._waited: OrderedDict[str, int] = OrderedDict()

    async def structure(self, extracted: Extracted, *, last: bool = False) -> Structured:
        """The resume; raises Retry where the endpoint may answer later."""
        spent = Answer("", 0, 0)
        reason = "the model's answer is no resume"
        evidence = Evidence(extracted)
        for _ in range(_ASKED):
            try:
                answer = await self._endpoint.ask(question(extracted.text))
            except Unreachable as away:
                self._wait(extracted, away, last=last)
                return await self._by_rules(extracted, away.reason, spent)
            except Refused as refusal:
                return await self._by_rules(extracted, str(refusal), spent)
            spent = Answer("", spent.read + answer.read, spent.written + answer.written)
            found = _resume_in(answer.text, evidence)
            if found is not None:
                resume, dropped = found
                return Structured(
                    resume=resume,
                    by=self._settings.model,
                    dropped=dropped,
                    input_tokens=spent.read,
                    output_tokens=spent.written,
                    cost=self._settings.cost(spent.read, spent.written),
                )
        return await self._by_rules(extracted, reason, spent)

    def _wait(self, extracted: Extracted, away: Unreachable, *, last: bool) -> None:
        """Ask for another try, unless this document has waited often enough."""
        name = hashlib.sha256(extracted.text.encode("utf-8", "replace")).hexdigest()
        waited = self._waited.pop(name, 0)
        if last or waited >= self._settings.retries:
            return
        self._waited[name] = waited + 1
        while len(self._waited) > _REMEMBERED:
            self._waited.popitem(last=False)
        raise Retry(after=away.after)

    async def _by_rules(self, extracted: Extracted, reason: str, spent: Answer) -> Structured:
        done = await self._behind.structure(extracted)
        return replace(
            done,
            fell_back=reason,
            input_tokens=spent.read,
            output_tokens=spent.written,
            cost=self._settings.cost(spent.read, spent.written) if spent.read or spent.written else None,
        )


def _resume_in(text: str, evidence: Evidence) -> tuple[Resume, int] | None:
    """The resume in an answer, without what is not so; None where there is none."""
    try:
        told = json.loads(_FENCE.sub("", text))
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    try:
        kept, dropped = evidence.keep(told)
    except RecursionError:
        return None
    fitting = _fitted(kept or {})
    if fitting is None:
        return None
    resume, unfit = fitting
    if resume.basics.name is None and not resume.work and not resume.education:
        return None
    return resume, dropped + unfit


def _fitted(told: dict[str, Any]) -> tuple[Resume, int] | None:
    """A resume of what is told, without what the schema does not know."""
    dropped = 0
    for _ in range(_MENDED):
        try:
            return Resume.of(told), dropped
        except ValidationError as error:
            if not _without(told, error.errors(include_url=False, include_context=False)[0]["loc"]):
                return None
            dropped += 1
    return None


def _without(told: Any, where: tuple[int | str, ...]) -> bool:
    """Take out what stands at a place; False where there is nothing."""
    for step in where[:-1]:
        try:
            told = told[step]
        except (KeyError, IndexError, TypeError):
            return False
    try:
        del told[where[-1]]
    except (KeyError, IndexError, TypeError):
        return False
    return True
