"""Requests under an idempotency key on PostgreSQL: a row each, taken by one statement."""

from __future__ import annotations

from datetime import timedelta

from windlass.stores.contract import Answered, Begun, NewRequest, OtherRequest, Standing, UnderWay
from windlass.stores.contract.requests import PRUNED_AT_ONCE
from windlass.stores.postgres.connection import Room, guarded
from windlass.stores.postgres.records import CLOCK, whole

# Mirrors `contract.requests.judge`. Of two that begin at once the second waits for the row of the first and then sees
# it. It is not the row itself that is removed: one statement may not do both.
BEGIN = f"""
WITH {CLOCK}, gone AS (
    DELETE FROM windlass_requests WHERE id IN (
        SELECT id FROM windlass_requests WHERE expires_at <= statement_timestamp() AND id <> $1::text
        ORDER BY expires_at LIMIT $7::int FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO windlass_requests AS r (id, fingerprint, first_id, mark, held_until, expires_at)
SELECT $1::text, $2::text, $3::text, $4::text, now + $5::interval, now + $6::interval FROM clock
ON CONFLICT (id) DO UPDATE SET fingerprint = excluded.fingerprint, mark = excluded.mark,
    held_until = excluded.held_until, answer = NULL,
    first_id = CASE WHEN r.expires_at <= statement_timestamp() THEN excluded.first_id ELSE r.first_id END,
    expires_at = CASE WHEN r.expires_at <= statement_timestamp() THEN excluded.expires_at ELSE r.expires_at END
WHERE r.expires_at <= statement_timestamp()
    OR r.answer IS NULL AND r.fingerprint = excluded.fingerprint
        AND (r.held_until <= statement_timestamp() OR r.mark = excluded.mark)
RETURNING first_id
"""  # noqa: S608  # constants
GET = """
SELECT fingerprint, answer, held_until - statement_timestamp() FROM windlass_requests WHERE id = $1::text
"""
FINISH = """
UPDATE windlass_requests SET answer = $3::text
WHERE id = $1::text AND mark = $2::text AND (answer IS NULL OR answer = $3::text) RETURNING id
"""
RELEASE = """
UPDATE windlass_requests SET held_until = statement_timestamp()
WHERE id = $1::text AND mark = $2::text AND answer IS NULL RETURNING id
"""
FORGET = "DELETE FROM windlass_requests WHERE id = $1::text AND mark = $2::text AND answer IS NULL RETURNING id"
_SOON = timedelta(0)


class PostgresRequests(Room):
    """See `contract.Requests` for what each promises."""

    @guarded
    async def begin(self, new: NewRequest) -> Standing:
        """Note that this is carried out now, unless it was or is."""
        asked = (new.id, new.fingerprint, new.first_id, new.mark, whole(new.hold), whole(new.keep), PRUNED_AT_ONCE)
        while True:
            rows = await self.link.fetch(BEGIN, *asked)
            if rows:
                return Begun(rows[0][0])
            found = await self.link.fetch(GET, new.id)
            if found:
                fingerprint, answer, left = found[0]
                if fingerprint != new.fingerprint:
                    return OtherRequest()
                return UnderWay(max(left, _SOON)) if answer is None else Answered(answer)
            # forgotten in between: it is free

    @guarded
    async def finish(self, id_: str, mark: str, answer: str) -> bool:
        """Keep the answer."""
        return bool(await self.link.fetch(FINISH, id_, mark, answer))

    @guarded
    async def release(self, id_: str, mark: str) -> bool:
        """Hold it no more."""
        return bool(await self.link.fetch(RELEASE, id_, mark))

    @guarded
    async def forget(self, id_: str, mark: str) -> bool:
        """Remove it."""
        return bool(await self.link.fetch(FORGET, id_, mark))
