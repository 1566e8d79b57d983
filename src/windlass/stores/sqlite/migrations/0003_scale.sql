-- The token of the last lease that an extension renewed, and of the one whose loss was counted as a crash.
ALTER TABLE windlass_jobs ADD COLUMN confirmed INTEGER;
ALTER TABLE windlass_jobs ADD COLUMN charged INTEGER;
-- The instant that no job with a fair key which comes later may stand before, while this one is queued.
ALTER TABLE windlass_jobs ADD COLUMN floor INTEGER;
CREATE INDEX windlass_jobs_floor ON windlass_jobs (queue, priority, floor) WHERE floor IS NOT NULL AND status = 'queued';

-- What was finished first, by ending and queue: what retention lets go of.
CREATE INDEX windlass_jobs_finished ON windlass_jobs (status, queue, finished_at) WHERE finished_at IS NOT NULL;
-- How deep a queue is, beside what is queued. A job that is claimed at once never enters it, and that is told by what
-- costs least to test.
CREATE INDEX windlass_jobs_depth ON windlass_jobs (queue, status) WHERE queued_at IS NULL OR blocked_by IS NOT NULL;
-- Whom a worker should stop: hardly ever anybody.
CREATE INDEX windlass_jobs_cancels ON windlass_jobs (worker_id) WHERE cancel_requested_at IS NOT NULL AND status = 'processing';

CREATE INDEX windlass_schedules_due ON windlass_schedules (next_tick) WHERE paused_at IS NULL;

-- When to look again at the line of a rate that jobs are blocked by.
CREATE TABLE windlass_calls (key TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX windlass_calls_at ON windlass_calls (at);
-- What has expired, for prune.
CREATE INDEX windlass_rates_at ON windlass_rates (at);
CREATE INDEX windlass_locks_expiry ON windlass_locks (expires_at);

-- One row: the highest clock seen here, and what was told so far. Everything in it only grows, but the queue, the hop and
-- since which telling the queue has been the same.
CREATE TABLE windlass_news (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    clock INTEGER NOT NULL,
    told INTEGER NOT NULL,
    claimable INTEGER NOT NULL,
    queue TEXT,
    since INTEGER NOT NULL,
    hop INTEGER NOT NULL,
    due INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    anything INTEGER NOT NULL
);
INSERT INTO windlass_news VALUES (1, 0, 0, 0, NULL, 0, 0, 0, 0, 0);
