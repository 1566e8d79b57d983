CREATE TABLE windlass_meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;

-- Instants are milliseconds since 1970 UTC. history holds one JSON object per line, moves counts every line ever written.
CREATE TABLE windlass_jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    queue TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL,
    priority INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL DEFAULT 0,
    max_crashes INTEGER NOT NULL,
    timeout_ms INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    queued_at INTEGER,
    cancel_requested_at INTEGER,
    worker_id TEXT,
    lease_token INTEGER NOT NULL DEFAULT 0,
    lease_expires_at INTEGER,
    started_at INTEGER,
    result TEXT,
    error TEXT,
    progress TEXT,
    finished_at INTEGER,
    duration_ms INTEGER,
    wait_ms INTEGER,
    unique_key TEXT,
    unique_queued TEXT,
    unique_running TEXT,
    idempotency_key TEXT,
    limit_key TEXT,
    limit_n INTEGER,
    blocked_by TEXT,
    schedule TEXT,
    tick INTEGER,
    parent_id TEXT,
    replay_of TEXT,
    correlation_id TEXT,
    user_id TEXT,
    entity_name TEXT,
    entity_id TEXT,
    tags TEXT,
    metadata TEXT,
    trace TEXT,
    moves INTEGER NOT NULL DEFAULT 1,
    history TEXT NOT NULL
);

CREATE UNIQUE INDEX windlass_jobs_id ON windlass_jobs (id);
-- What waits: the claim walks it in order, and type rides along so that other types are passed over without a look-up.
CREATE INDEX windlass_jobs_claim ON windlass_jobs (queue, priority, run_at, id, type) WHERE status = 'queued';
CREATE INDEX windlass_jobs_due ON windlass_jobs (run_at) WHERE status IN ('scheduled', 'retrying');
CREATE INDEX windlass_jobs_leases ON windlass_jobs (lease_expires_at) WHERE status = 'processing';
CREATE INDEX windlass_jobs_slots ON windlass_jobs (limit_key) WHERE status = 'processing' AND limit_key IS NOT NULL;
CREATE INDEX windlass_jobs_blocked ON windlass_jobs (blocked_by, queued_at, id) WHERE status = 'blocked';
CREATE UNIQUE INDEX windlass_jobs_unique ON windlass_jobs (unique_key) WHERE unique_key IS NOT NULL;
CREATE UNIQUE INDEX windlass_jobs_tick ON windlass_jobs (schedule, tick) WHERE schedule IS NOT NULL;
-- Views: ids are made in order of time, so each of these lists newest first without sorting.
-- Processing jobs are few and found by their leases; leaving them out saves two writes in the life of every job.
CREATE INDEX windlass_jobs_status ON windlass_jobs (status, id, queue) WHERE status <> 'processing';
CREATE INDEX windlass_jobs_queue ON windlass_jobs (queue, id);
CREATE INDEX windlass_jobs_type ON windlass_jobs (type, id);
CREATE INDEX windlass_jobs_user ON windlass_jobs (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX windlass_jobs_entity ON windlass_jobs (entity_name, entity_id, id) WHERE entity_name IS NOT NULL;
CREATE INDEX windlass_jobs_correlation ON windlass_jobs (correlation_id, id) WHERE correlation_id IS NOT NULL;
CREATE INDEX windlass_jobs_parent ON windlass_jobs (parent_id, id) WHERE parent_id IS NOT NULL;

CREATE TABLE windlass_idempotency (key TEXT PRIMARY KEY, job_id TEXT NOT NULL, expires_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX windlass_idempotency_expiry ON windlass_idempotency (expires_at);

CREATE TABLE windlass_queues (name TEXT PRIMARY KEY, paused_at INTEGER, max_depth INTEGER) WITHOUT ROWID;

-- What ended in each minute, counted in the transaction that ended it.
CREATE TABLE windlass_minutes (
    minute INTEGER NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    n INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    wait_ms INTEGER NOT NULL,
    PRIMARY KEY (minute, queue, type, status, bucket)
) WITHOUT ROWID;

CREATE TABLE windlass_schedules (
    name TEXT PRIMARY KEY,
    expression TEXT NOT NULL,
    zone TEXT NOT NULL,
    overlap TEXT NOT NULL,
    missed TEXT NOT NULL,
    missed_limit INTEGER NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    queue TEXT NOT NULL,
    options TEXT NOT NULL,
    next_tick INTEGER NOT NULL,
    last_tick INTEGER,
    paused_at INTEGER,
    declared INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE windlass_ticks (
    schedule TEXT NOT NULL,
    tick INTEGER NOT NULL,
    fired TEXT NOT NULL,
    job_id TEXT,
    PRIMARY KEY (schedule, tick)
) WITHOUT ROWID;

CREATE TABLE windlass_workers (
    id TEXT PRIMARY KEY, described TEXT NOT NULL, started_at INTEGER NOT NULL, beat_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE windlass_locks (
    name TEXT PRIMARY KEY, owner TEXT NOT NULL, token INTEGER NOT NULL, expires_at INTEGER NOT NULL
) WITHOUT ROWID;
