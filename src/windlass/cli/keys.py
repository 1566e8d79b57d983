"""`keys`: what lets programs and people in over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass.cli.desk import Desk, at_desk
from windlass.cli.facts import at
from windlass.cli.output import NOT_FOUND, USAGE, Stop
from windlass.cli.words import maybe_duration, value
from windlass.core.keys import shown
from windlass.core.values import encode
from windlass.core.wording import clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.stores.contract import Key


class Deed(StrEnum):
    """What to do with keys."""

    LIST = "list"
    CREATE = "create"
    REVOKE = "revoke"


def keys(
    ctx: typer.Context,
    deed: Annotated[Deed, typer.Argument(metavar="[list | create | revoke]", help="What to do.")] = Deed.LIST,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME | ID …", help="Its name, or their ids.")] = None,
    scope: Annotated[str, typer.Option(help="Some of enqueue, read, operate, admin.")] = "enqueue,read",
    owner: Annotated[str | None, typer.Option(help="Whose jobs it sees and makes; * is everybody's.")] = None,
    queues: Annotated[str | None, typer.Option(metavar="NAMES", help="Only these queues; mail.* is all such.")] = None,
    types: Annotated[str | None, typer.Option(metavar="NAMES", help="Only these types.")] = None,
    expires: Annotated[str | None, typer.Option(metavar="DURATION", help="For how long, such as 90d.")] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="For applications to read; once for each."),
    ] = None,
) -> None:
    """List, create and revoke keys. A secret is shown once, when it is made; nobody can read it later.

    For instance:

      windlass keys create nightly --scope enqueue,read --owner ada --types 'mail.*' --expires 90d

      windlass keys create --owner ada --attribute premium=true

      windlass keys revoke 5f0c1e9ab2d4
    """
    if deed is Deed.CREATE and (len(names or ()) > 1 or not owner):
        raise Stop(USAGE, "whose, and what for? For instance: windlass keys create nightly --owner ada")
    attributes = _attributes(attribute or [])
    if deed is Deed.REVOKE and not names:
        raise Stop(USAGE, "which keys? Name them by their ids, as windlass keys lists them")

    async def work(desk: Desk) -> None:
        if deed is Deed.CREATE:
            made = await desk.app.keys.create(
                (names or [f"a key of {owner}"])[0],
                owner=owner or "",
                scopes=_several(scope) or [],
                queues=_several(queues),
                types=_several(types),
                lasts=maybe_duration(expires, "--expires"),
                attributes=attributes,
            )
            await desk.record("key.create", f"key:{made.key.id}", after=_audited(made.key))
            if desk.screen.as_json:
                desk.screen.fact({"key": made.secret, **_facts(made.key)})
            else:
                desk.screen.say(f"key {made.key.id} of {made.key.owner}: keep its secret now, it is not shown again")
                desk.screen.line(made.secret)
        elif deed is Deed.REVOKE:
            revoked = await desk.app.keys.revoke(*(names or ()))
            for one in revoked:
                await desk.record("key.revoke", f"key:{one}", after={"revoked": True})
            desk.screen.say(f"revoked: {', '.join(revoked) or 'none'}")
            missing = set(names or ()) - set(revoked)
            if missing:
                raise Stop(NOT_FOUND, f"no key has the id {', '.join(sorted(missing))}")
        else:
            _show(desk, await desk.app.keys.list())

    at_desk(ctx, work, makes=deed is Deed.CREATE)


def _several(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _attributes(given: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals or not name.strip():
            raise Stop(USAGE, f"--attribute {shown(one)}: expected NAME=VALUE, such as premium=true")
        if name in found:
            raise Stop(USAGE, f"--attribute {shown(name)} is there twice: give it once, with a list for several values")
        found[name] = value(text)
    return found


def _show(desk: Desk, found: Sequence[Key]) -> None:
    if desk.screen.as_json:
        for key in found:
            desk.screen.fact(_facts(key))
    elif not found:
        desk.screen.say("no keys yet: windlass keys create NAME --owner NAME makes one")
    else:
        heads = ("id", "name", "owner", "scopes", "limited to", "attributes", "last used", "state")
        desk.screen.table(heads, [_row(key) for key in found])


def _row(key: Key) -> tuple[object, ...]:
    limits = [
        *(f"queue {name}" for name in sorted(key.grants.queues or ())),
        *(f"type {name}" for name in sorted(key.grants.types or ())),
    ]
    used = "never" if key.used_at is None else _minute(key.used_at)
    attributes = ", ".join(f"{name}={encode(known)}" for name, known in sorted(key.grants.attributes.items()))
    scopes = ", ".join(sorted(key.scopes))
    return key.id, key.name, key.owner, scopes, ", ".join(limits) or "–", attributes or "–", used, _state(key)


def _state(key: Key) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "lets in"
    # By this host's clock: what lets in is for the store to say.
    word = "until" if key.expires_at > datetime.now(UTC) else "expired"
    return f"{word} {_minute(key.expires_at)}"


def _minute(instant: datetime) -> str:
    return clock(instant).rpartition(":")[0]


def _audited(key: Key) -> dict[str, object]:
    """What was given away; what the application knows of its holder is not the trail's business."""
    facts = _facts(key)
    return {name: facts[name] for name in ("name", "owner", "scopes", "queues", "types", "expires_at")}


def _facts(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "kind": key.kind.value,
        "name": key.name,
        "owner": key.owner,
        "scopes": sorted(key.scopes),
        "queues": None if key.grants.queues is None else sorted(key.grants.queues),
        "types": None if key.grants.types is None else sorted(key.grants.types),
        "attributes": key.grants.attributes,
        "created_at": at(key.created_at),
        "expires_at": at(key.expires_at),
        "used_at": at(key.used_at),
        "revoked_at": at(key.revoked_at),
    }
