"""Callers: who asks, whose jobs they see, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.core.errors import SettingsError
from windlass.core.grants import ANYTHING, Grants
from windlass.stores.contract import Scope
from windlass.web.problems import FORBIDDEN, Refused

if TYPE_CHECKING:
    from windlass.client.dead_letters import DeadLettersRoom
    from windlass.client.jobs import JobsRoom
    from windlass.client.operations import OperationsRoom
    from windlass.client.own_stats import OwnStats
    from windlass.client.stats import StatsRoom
    from windlass.web.answers import Answers

EVERYBODY = "*"
"""the owner of a key that is not one user's: it sees the jobs of all"""


OWN = "windlass."
"""what the types of windlass's own jobs begin with: what they do for whom is theirs to say, never a request's"""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    name: str
    """as the audit trail has it"""
    owner: str
    scopes: frozenset[Scope]
    grants: Grants = ANYTHING

    @property
    def attributes(self) -> dict[str, Any]:
        """What the application knows of its holder, such as {"premium": True}: of the key, or claims of the token."""
        return self.grants.attributes

    @property
    def sees_all(self) -> bool:
        """Whether the jobs of all are shown to it."""
        return self.owner == EVERYBODY or Scope.ADMIN in self.scopes

    def may(self, scope: Scope) -> bool:
        """Whether it was given a scope; an administrator was given all."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def check(self, scope: Scope) -> None:
        """Refuse who may not."""
        if not self.may(scope):
            given = ", ".join(sorted(self.scopes)) or "none"
            raise Refused(FORBIDDEN, f"this needs the scope {scope.value}, your key has: {given}")

    def check_oversight(self) -> None:
        """Refuse one user's key what concerns all."""
        if not self.sees_all:
            raise Refused(FORBIDDEN, "this concerns the jobs of all users: your key is one user's")

    def check_unlimited(self) -> None:
        """Refuse a limited key to give away more than it has, or to take from others what it has not."""
        if self.grants.queues is not None or self.grants.types is not None:
            raise Refused(FORBIDDEN, "your key is limited to some queues or types: it neither makes nor revokes keys")

    def user_of(self, named: str | None, before: str | None = None) -> str | None:
        """Whose a job is that this caller makes: its own, unless an administrator names another.

        `before` is whom one has named already, of what is made anew.
        """
        if not self.sees_all and named not in (None, self.owner):
            raise SettingsError("userId names another user: leave it out, the job is yours")
        if self.sees_all and named not in (None, before) and not self.may(Scope.ADMIN):
            raise SettingsError("userId names another user: only administrators may, leave it out")
        return named if self.sees_all else self.owner

    def check_job(self, type_: str, queue: str) -> None:
        """Refuse a job outside of what the key is limited to, and to everybody those that windlass makes itself."""
        if type_.startswith(OWN):
            raise Refused(FORBIDDEN, f"types that begin with {OWN!r} are windlass's own: ask for what they do")
        self.check_limits(type_, queue)

    def check_limits(self, type_: str, queue: str) -> None:
        """Refuse what is done to a job outside of what the key is limited to. Windlass's own are their user's."""
        if not type_.startswith(OWN) and not self.grants.allow(type_=type_, queue=queue):
            raise Refused(FORBIDDEN, f"your key is not good for jobs of the type {type_!r} in the queue {queue!r}")

    def check_queue(self, queue: str) -> None:
        """Refuse what is done to a queue outside of what the key is limited to."""
        if not self.grants.allow_queue(queue):
            raise Refused(FORBIDDEN, f"your key is not good for the queue {queue!r}")

    def jobs(self, app: Answers) -> JobsRoom:
        """The jobs that it sees."""
        return app.jobs if self.sees_all else app.jobs.only(self.owner)

    def dead_letters(self, app: Answers) -> DeadLettersRoom:
        """The failed ones among them."""
        return app.dead_letters if self.sees_all else app.dead_letters.only(self.owner)

    def stats(self, app: Answers) -> StatsRoom | OwnStats:
        """Figures of them."""
        return app.stats if self.sees_all else app.stats.only(self.owner)

    def operations(self, app: Answers) -> OperationsRoom:
        """Orders for many of them."""
        return app.operations if self.sees_all else app.operations.only(self.owner)
