"""What the web asks of the application: the floor of answers that the command line asks, too, and nothing below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Unpack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.client.audit import AuditRoom
    from windlass.client.dead_letters import DeadLettersRoom
    from windlass.client.handle import Handle
    from windlass.client.health import HealthRoom
    from windlass.client.jobs import JobsRoom
    from windlass.client.keys import KeysRoom
    from windlass.client.many import Wanted
    from windlass.client.operations import OperationsRoom
    from windlass.client.options import Asked
    from windlass.client.queues import QueuesRoom
    from windlass.client.requests import RequestsRoom
    from windlass.client.schedules import SchedulesRoom
    from windlass.client.stats import StatsRoom
    from windlass.client.types import TypesRoom
    from windlass.client.workers import WorkersRoom
    from windlass.core.errors import WindlassError
    from windlass.observability.prometheus import Prometheus


class OwnJobs(Protocol):
    """Windlass's own jobs."""

    def need(self) -> None:
        """There may be some: see to it that they run, in this process if need be."""
        ...


class Answers(Protocol):
    """An application, as far as the web needs one."""

    @property
    def jobs(self) -> JobsRoom: ...
    @property
    def dead_letters(self) -> DeadLettersRoom: ...
    @property
    def operations(self) -> OperationsRoom: ...
    @property
    def own(self) -> OwnJobs: ...
    @property
    def queues(self) -> QueuesRoom: ...
    @property
    def schedules(self) -> SchedulesRoom: ...
    @property
    def workers(self) -> WorkersRoom: ...
    @property
    def stats(self) -> StatsRoom: ...
    @property
    def types(self) -> TypesRoom: ...
    @property
    def health(self) -> HealthRoom: ...
    @property
    def keys(self) -> KeysRoom: ...
    @property
    def audit(self) -> AuditRoom: ...
    @property
    def requests(self) -> RequestsRoom: ...

    def metrics(self) -> Prometheus: ...
    async def enqueue(
        self, job: str, payload: Any = None, /, *, tx: object | None = None, **asked: Unpack[Asked]
    ) -> Handle[Any]: ...
    async def enqueue_each(
        self, jobs: Iterable[Wanted], *, tx: object | None = None
    ) -> list[Handle[Any] | WindlassError]: ...
