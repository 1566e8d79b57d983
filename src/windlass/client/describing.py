"""Declarations in words: what a type's options are, and what differs between two versions of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from windlass.core.wording import milliseconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.core.declared import Declared

_NONE = "none"
_NOT_DECLARED = "not declared"


def options_of(declared: Declared) -> dict[str, str]:
    """Each option that a type declares, in words, by its name as `app.job` takes it; defaults are left out."""
    return dict(_options(declared.options))


def differences(before: Declared, after: Declared) -> list[str]:
    """What is declared otherwise, a line each; empty where the two are the same."""
    told = [] if before.queue == after.queue else [f"queue: {before.queue} → {after.queue}"]
    old, new = options_of(before), options_of(after)
    told += [
        f"{name}: {old.get(name, _NOT_DECLARED)} → {new.get(name, _NOT_DECLARED)}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    told += _of_arguments(before.payload_schema or {}, after.payload_schema or {})
    if before.result_schema != after.result_schema:
        told.append("result: another type")
    return told or ([] if before.text == after.text else ["something that older versions do not declare"])


def _options(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "retry", _retry(options["retry"])
    for name in ("timeout", "delay", "expires", "longest_wait"):
        if f"{name}_ms" in options:
            yield name, _span(options[f"{name}_ms"])
    if "idempotency_window_ms" in options:
        yield "idempotent", f"within {_span(options['idempotency_window_ms'])}"
    if "unique" in options:
        yield "unique", _unique(options["unique"])
    if "limit" in options:
        yield "limit", f"{options['limit']['n']} at once of {options['limit']['key']}"
    if "rate" in options:
        rate = options["rate"]
        yield "rate", f"{rate['n']} per {_span(rate['per_ms'])} of {rate['key'] or 'the type'}"
    for name in ("priority", "max_crashes", "on_conflict", "fair_by"):
        if name in options:
            yield name, str(options[name])
    if "batch" in options:
        yield "batch", f"at most {plural(options['batch'], 'job')} in one call"
    if "tags" in options:
        yield "tags", " ".join(options["tags"])


def _retry(retry: Mapping[str, Any]) -> str:
    tries = "1 attempt" if retry["attempts"] == 1 else plural(retry["attempts"], "attempt")
    never = f", never after {', '.join(retry['never'])}" if retry["never"] else ""
    return tries + never


def _unique(unique: Mapping[str, str | None]) -> str:
    queued, running = unique["queued"], unique["running"]
    if queued == running:
        return str(queued)
    return ", ".join(f"{key} while {when}" for key, when in ((queued, "queued"), (running, "running")) if key)


def _span(ms: int | None) -> str:
    return _NONE if ms is None else milliseconds(ms)


def _of_arguments(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if before == after:
        return
    old, new = _members(before), _members(after)
    required = set(cast("list[str]", after.get("required", [])))
    for name in sorted(new.keys() - old.keys()):
        yield f"payload: {name} is new" + (" and required" if name in required else "")
    for name in sorted(old.keys() - new.keys()):
        yield f"payload: {name} is gone"
    for name in sorted(old.keys() & new.keys()):
        if old[name] != new[name]:
            yield f"payload: {name} is of another type"
        elif name in required and name not in before.get("required", []):
            yield f"payload: {name} is required"
    if old == new and before.get("required") == after.get("required"):
        yield "payload: another type"


def _members(schema: Mapping[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", schema.get("properties", {}))
