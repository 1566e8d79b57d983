"""The store contract: what worker, client and views may ask of any store, split by consumer.

Every operation is batched, every write on a processing job is fenced by its lease token, and every instant is stamped
and judged by the store's own clock. A store applies what the law decided; it never decides. Each promise below has a
test in `tests/contract/` that runs on every store and reads back record and history.
"""

from windlass.core.admission import Created, Duplicate, Full, Inserted, Replaced
from windlass.stores.contract.audit import Audit, AuditEntry, AuditFilter, AuditPage
from windlass.stores.contract.filtering import CLOCKS_APART, MOST_LOOKED_AT, Filter
from windlass.stores.contract.jobs import Completes, Jobs
from windlass.stores.contract.keys import Key, KeyKind, Keys, NewKey, Scope
from windlass.stores.contract.leases import Claimed, Extended, Keep, Lease, Report, Verdict, Want
from windlass.stores.contract.locks import Granted, Held, Locks
from windlass.stores.contract.notices import ANYTHING, ENDS, LANES, About, Notice, Notices
from windlass.stores.contract.operating import Action, Answer, Operated, Order
from windlass.stores.contract.paging import Page, cursor_after
from windlass.stores.contract.queues import DEPTH_CAP, QueueInfo, Queues
from windlass.stores.contract.requests import (
    Answered,
    Begun,
    NewRequest,
    OtherRequest,
    Requests,
    Standing,
    UnderWay,
)
from windlass.stores.contract.schedules import Due, Fired, Firing, Schedule, Schedules, Tick
from windlass.stores.contract.series import SERIES_KEPT, Series
from windlass.stores.contract.store import Capabilities, Schema, Store
from windlass.stores.contract.sweeping import Promoted, Pruned, Rescued, Retention
from windlass.stores.contract.types import TypeInfo, Types
from windlass.stores.contract.views import (
    COUNT_CAP,
    MOST_COUNTED,
    Count,
    Figures,
    Looked,
    Minute,
    Ran,
    Stats,
    StatusCount,
    Views,
    together,
)
from windlass.stores.contract.workers import SILENT, Peer, WorkerInfo, Workers

__all__ = [
    "ANYTHING",
    "CLOCKS_APART",
    "COUNT_CAP",
    "DEPTH_CAP",
    "ENDS",
    "LANES",
    "MOST_COUNTED",
    "MOST_LOOKED_AT",
    "SERIES_KEPT",
    "SILENT",
    "About",
    "Action",
    "Answer",
    "Answered",
    "Audit",
    "AuditEntry",
    "AuditFilter",
    "AuditPage",
    "Begun",
    "Capabilities",
    "Claimed",
    "Completes",
    "Count",
    "Created",
    "Due",
    "Duplicate",
    "Extended",
    "Figures",
    "Filter",
    "Fired",
    "Firing",
    "Full",
    "Granted",
    "Held",
    "Inserted",
    "Jobs",
    "Keep",
    "Key",
    "KeyKind",
    "Keys",
    "Lease",
    "Locks",
    "Looked",
    "Minute",
    "NewKey",
    "NewRequest",
    "Notice",
    "Notices",
    "Operated",
    "Order",
    "OtherRequest",
    "Page",
    "Peer",
    "Promoted",
    "Pruned",
    "QueueInfo",
    "Queues",
    "Ran",
    "Replaced",
    "Report",
    "Requests",
    "Rescued",
    "Retention",
    "Schedule",
    "Schedules",
    "Schema",
    "Scope",
    "Series",
    "Standing",
    "Stats",
    "StatusCount",
    "Store",
    "Tick",
    "TypeInfo",
    "Types",
    "UnderWay",
    "Verdict",
    "Views",
    "Want",
    "WorkerInfo",
    "Workers",
    "cursor_after",
    "together",
]
