"""windlass: durable background jobs on the database you already have."""

from typing import TYPE_CHECKING

from windlass import events
from windlass.app import Windlass
from windlass.client.bulk import Bulk
from windlass.client.calls import JobFunction
from windlass.client.flows import Bound, Flow, FlowHandle, Group
from windlass.client.handle import Handle
from windlass.client.locks import Lock
from windlass.client.surrounding import Outgoing
from windlass.core.ageing import Ageing
from windlass.core.batch import Batched
from windlass.core.context import Ctx
from windlass.core.declared import Declared
from windlass.core.errors import (
    ChildFailed,
    DuplicateJob,
    HandlerError,
    HandlerExists,
    HandlerNotFound,
    JobError,
    JobFailed,
    JobNotFound,
    JobTimeout,
    LeaseLost,
    LockHeld,
    LockLost,
    MoveRefused,
    PayloadInvalid,
    PayloadUnfit,
    QueueFull,
    ScheduleNotFound,
    SchemaMismatch,
    SecretUnreadable,
    SettingsError,
    SignalExists,
    SignalTooMuch,
    StepInvalid,
    StoreError,
    StoreUnavailable,
    TransactionRefused,
    ValueRefused,
    WindlassError,
)
from windlass.core.events import Event
from windlass.core.every import Every, every
from windlass.core.handler import Handler
from windlass.core.history import Entry, Happened
from windlass.core.job import Error, Job, Progress
from windlass.core.limit import Limit
from windlass.core.rate import Rate
from windlass.core.retry import Retry
from windlass.core.schedule import Cron, cron
from windlass.core.secret import Secret
from windlass.core.signals import Cancel, Reject, Signal, Snooze, Suspend
from windlass.core.status import Status
from windlass.core.unique import Unique
from windlass.observability.context import JobContext
from windlass.observability.logs import Logs
from windlass.stores.contract import AuditEntry, AuditPage, Key, KeyKind, Retention, Scope, TypeInfo

if TYPE_CHECKING:
    from windlass.client.charts import Charts
    from windlass.client.checking import Check, Level
    from windlass.client.comparing import Comparison
    from windlass.client.counting import Counts
    from windlass.client.explaining import Explanation, Holder, Why
    from windlass.client.figures import Band, RunFigures
    from windlass.client.health import Readiness
    from windlass.client.keys import CreatedKey
    from windlass.client.stats import Overview
    from windlass.client.types import TypeState
    from windlass.client.workers import Presence, WorkerState
    from windlass.observability.errors import Failure
    from windlass.observability.forms import JsonFormatter, TextFormatter
    from windlass.observability.reporting import MetricsReporter
    from windlass.observability.statsd import StatsD
else:
    # What windows and tools ask for is loaded when they do: an application that enqueues and works starts the sooner.
    _LATER = {
        "Band": "client.figures",
        "Charts": "client.charts",
        "Check": "client.checking",
        "Comparison": "client.comparing",
        "Counts": "client.counting",
        "CreatedKey": "client.keys",
        "Explanation": "client.explaining",
        "Failure": "observability.errors",
        "Holder": "client.explaining",
        "JsonFormatter": "observability.forms",
        "Level": "client.checking",
        "MetricsReporter": "observability.reporting",
        "Overview": "client.stats",
        "Presence": "client.workers",
        "Readiness": "client.health",
        "RunFigures": "client.figures",
        "StatsD": "observability.statsd",
        "TextFormatter": "observability.forms",
        "TypeState": "client.types",
        "Why": "client.explaining",
        "WorkerState": "client.workers",
    }

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _LATER:
            raise AttributeError(f"module 'windlass' has no attribute {name!r}")
        return getattr(import_module(f"windlass.{_LATER[name]}"), name)


__version__ = "0.1.0"

__all__ = [
    "Ageing",
    "AuditEntry",
    "AuditPage",
    "Band",
    "Batched",
    "Bound",
    "Bulk",
    "Cancel",
    "Charts",
    "Check",
    "ChildFailed",
    "Comparison",
    "Counts",
    "CreatedKey",
    "Cron",
    "Ctx",
    "Declared",
    "DuplicateJob",
    "Entry",
    "Error",
    "Event",
    "Every",
    "Explanation",
    "Failure",
    "Flow",
    "FlowHandle",
    "Group",
    "Handle",
    "Handler",
    "HandlerError",
    "HandlerExists",
    "HandlerNotFound",
    "Happened",
    "Holder",
    "Job",
    "JobContext",
    "JobError",
    "JobFailed",
    "JobFunction",
    "JobNotFound",
    "JobTimeout",
    "JsonFormatter",
    "Key",
    "KeyKind",
    "LeaseLost",
    "Level",
    "Limit",
    "Lock",
    "LockHeld",
    "LockLost",
    "Logs",
    "MetricsReporter",
    "MoveRefused",
    "Outgoing",
    "Overview",
    "PayloadInvalid",
    "PayloadUnfit",
    "Presence",
    "Progress",
    "QueueFull",
    "Rate",
    "Readiness",
    "Reject",
    "Retention",
    "Retry",
    "RunFigures",
    "ScheduleNotFound",
    "SchemaMismatch",
    "Scope",
    "Secret",
    "SecretUnreadable",
    "SettingsError",
    "Signal",
    "SignalExists",
    "SignalTooMuch",
    "Snooze",
    "StatsD",
    "Status",
    "StepInvalid",
    "StoreError",
    "StoreUnavailable",
    "Suspend",
    "TextFormatter",
    "TransactionRefused",
    "TypeInfo",
    "TypeState",
    "Unique",
    "ValueRefused",
    "Why",
    "Windlass",
    "WindlassError",
    "WorkerState",
    "cron",
    "events",
    "every",
]
