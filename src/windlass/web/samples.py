"""Examples: what stands in the OpenAPI document to be read by people."""

from __future__ import annotations

from typing import Any

_ID = "01a1eef7-f35e-7000-8009-6eb526efee66"
JOB: dict[str, Any] = {
    "id": _ID,
    "_id": _ID,
    "type": "mail.send",
    "queue": "mail",
    "status": "succeeded",
    "priority": 100,
    "payload": {"to": "ada@example.org"},
    "result": "sent",
    "error": None,
    "progress": None,
    "attempts": 1,
    "maxAttempts": 3,
    "crashes": 0,
    "createdAt": "2026-03-01T09:30:00.000Z",
    "updatedAt": "2026-03-01T09:30:00.412Z",
    "runAt": "2026-03-01T09:30:00.000Z",
    "expiresAt": None,
    "startedAt": "2026-03-01T09:30:00.008Z",
    "finishedAt": "2026-03-01T09:30:00.412Z",
    "durationMs": 404,
    "waitMs": 8,
    "cancelRequestedAt": None,
    "blockedBy": None,
    "workerId": None,
    "uniqueKey": None,
    "userId": "ada",
    "entityName": "order",
    "entityId": "7",
    "correlationId": None,
    "parentId": None,
    "replayOf": None,
    "schedule": None,
    "tags": [],
    "metadata": {},
}
EXAMPLES: dict[str, Any] = {
    "Job": JOB,
    "Page": {"items": [JOB], "nextCursor": None, "previousCursor": None, "complete": True},
    "Explanation": {
        "jobId": _ID,
        "status": "queued",
        "why": "in_line",
        "text": "It waits for its turn.",
        "since": "2026-03-01T09:30:00.000Z",
        "until": None,
    },
    "History": {
        "items": [
            {
                "number": 1,
                "at": "2026-03-01T09:30:00.000Z",
                "happened": "enqueued",
                "status": "queued",
                "actor": None,
                "note": None,
            }
        ]
    },
    "Replay": {"type": "mail.send", "rate": 10, "dryRun": True},
    "Signal": {"name": "approved", "value": {"by": "grace"}},
    "Reason": {"reason": "the address was wrong"},
}
"""by component"""
