"""Rooms: what an application answers, each loaded when it is asked for; most processes enqueue and work alone."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.client.audit import AuditRoom
    from windlass.client.client import Client
    from windlass.client.dead_letters import DeadLettersRoom
    from windlass.client.health import HealthRoom
    from windlass.client.jobs import JobsRoom
    from windlass.client.keys import KeysRoom
    from windlass.client.operations import OperationsRoom
    from windlass.client.queues import QueuesRoom
    from windlass.client.requests import RequestsRoom
    from windlass.client.secrets import SecretsRoom
    from windlass.client.stats import StatsRoom
    from windlass.client.types import TypesRoom
    from windlass.client.vault import Vault
    from windlass.client.workers import WorkersRoom
    from windlass.core.draft import Options
    from windlass.core.registry import Registry
    from windlass.settings import Settings
    from windlass.stores.contract import Retention


class Rooms:
    """Its jobs are asked most, and are there from the start."""

    client: Client
    jobs: JobsRoom
    registry: Registry
    settings: Settings
    retention: Retention
    defaults: Options
    vault: Vault

    @cached_property
    def dead_letters(self) -> DeadLettersRoom:
        """Failed jobs: look at them by fingerprint, replay or discard them."""
        from windlass.client.dead_letters import DeadLettersRoom

        return DeadLettersRoom(self.client, self.jobs)

    @cached_property
    def stats(self) -> StatsRoom:
        """How many jobs stand where, and what has ended lately."""
        from windlass.client.stats import StatsRoom

        return StatsRoom(self.client)

    @cached_property
    def queues(self) -> QueuesRoom:
        """Queues: list, pause and resume them, limit their depth."""
        from windlass.client.queues import QueuesRoom

        return QueuesRoom(self.client, self.stats)

    @cached_property
    def workers(self) -> WorkersRoom:
        """The workers of this store, alive or silent."""
        from windlass.client.workers import WorkersRoom

        return WorkersRoom(self.client)

    @cached_property
    def health(self) -> HealthRoom:
        """What is wrong, or soon will be; whether the store can be worked with."""
        from windlass.client.health import HealthRoom

        return HealthRoom(self.client, self.jobs)

    @cached_property
    def types(self) -> TypesRoom:
        """What workers handle: the catalogue."""
        from windlass.client.types import TypesRoom

        return TypesRoom(self.client)

    @cached_property
    def keys(self) -> KeysRoom:
        """API keys and sessions."""
        from windlass.client.keys import KeysRoom

        return KeysRoom(self.client)

    @cached_property
    def secrets(self) -> SecretsRoom:
        """The keys that seal the secrets of jobs."""
        from windlass.client.secrets import SecretsRoom

        return SecretsRoom(self.client, self.vault)

    @cached_property
    def audit(self) -> AuditRoom:
        """Who did what to what."""
        from windlass.client.audit import AuditRoom

        return AuditRoom(self.client, self.retention.audit)

    @cached_property
    def operations(self) -> OperationsRoom:
        """Retry, cancel, delete and replay by a filter, in the background."""
        from windlass.client.operations import OperationsRoom, declared

        operations = declared(self.client, self.audit, self.defaults)
        self.registry.build_in(operations)
        return OperationsRoom(self.client, self.jobs, operations)

    @cached_property
    def requests(self) -> RequestsRoom:
        """What was asked under an idempotency key."""
        from windlass.client.requests import RequestsRoom

        return RequestsRoom(self.client, self.settings.idempotency)
