CREATE TABLE windlass_meta (key text COLLATE "C" PRIMARY KEY, value text NOT NULL);

-- history holds one JSON object per line, moves counts every line ever written. Payload, result, error, progress and
-- metadata are json and not jsonb: they come back exactly as they went in, and can be queried all the same.
CREATE TABLE windlass_jobs (
    id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    payload json NOT NULL,
    status text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    run_at timestamptz NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL,
    crashes integer NOT NULL DEFAULT 0,
    max_crashes integer NOT NULL,
    timeout_ms bigint,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    queued_at timestamptz,
    cancel_requested_at timestamptz,
    worker_id text COLLATE "C",
    lease_token bigint NOT NULL DEFAULT 0,
    lease_expires_at timestamptz,
    started_at timestamptz,
    result json,
    error json,
    progress json,
    finished_at timestamptz,
    duration_ms bigint,
    wait_ms bigint,
    unique_key text COLLATE "C",
    unique_queued text COLLATE "C",
    unique_running text COLLATE "C",
    idempotency_key text COLLATE "C",
    limit_key text COLLATE "C",
    limit_n integer,
    blocked_by text COLLATE "C",
    schedule text COLLATE "C",
    tick timestamptz,
    parent_id text COLLATE "C",
    replay_of text COLLATE "C",
    correlation_id text COLLATE "C",
    user_id text COLLATE "C",
    entity_name text COLLATE "C",
    entity_id text COLLATE "C",
    tags text[],
    metadata json,
    trace text,
    moves integer NOT NULL DEFAULT 1,
    history text NOT NULL,
    PRIMARY KEY (id)
) WITH (
    -- Room on each page for what changes often without touching an index: leases and progress.
    fillfactor = 80,
    -- A queue's rows die young: wait for a share of the whole table and the dead outnumber the living.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);

-- What waits: the claim walks it in order. Every index is partial where it can be, so that it holds the work at hand.
CREATE INDEX windlass_jobs_claim ON windlass_jobs (queue, priority, run_at, id) WHERE status = 'queued';
CREATE INDEX windlass_jobs_due ON windlass_jobs (run_at) WHERE status IN ('scheduled', 'retrying');
-- Not on lease_expires_at: a heartbeat must not touch an index. Processing jobs are few, and all are looked at.
CREATE INDEX windlass_jobs_leases ON windlass_jobs (worker_id) WHERE status = 'processing';
CREATE INDEX windlass_jobs_slots ON windlass_jobs (limit_key) WHERE status = 'processing' AND limit_key IS NOT NULL;
CREATE INDEX windlass_jobs_blocked ON windlass_jobs (blocked_by, queued_at, id) WHERE status = 'blocked';
CREATE UNIQUE INDEX windlass_jobs_unique ON windlass_jobs (unique_key) WHERE unique_key IS NOT NULL;
CREATE UNIQUE INDEX windlass_jobs_tick ON windlass_jobs (schedule, tick) WHERE schedule IS NOT NULL;
-- Views: ids are made in order of time, so each of these lists newest first without sorting.
-- Processing jobs are few and found by their leases; leaving them out saves writes in the life of every job.
CREATE INDEX windlass_jobs_status ON windlass_jobs (status, id) INCLUDE (queue) WHERE status <> 'processing';
CREATE INDEX windlass_jobs_queue ON windlass_jobs (queue, id) WHERE status <> 'processing';
CREATE INDEX windlass_jobs_type ON windlass_jobs (type, id) WHERE status <> 'processing';
CREATE INDEX windlass_jobs_user ON windlass_jobs (user_id, id) WHERE status <> 'processing' AND user_id IS NOT NULL;
CREATE INDEX windlass_jobs_entity ON windlass_jobs (entity_name, entity_id, id)
    WHERE status <> 'processing' AND entity_name IS NOT NULL;
CREATE INDEX windlass_jobs_correlation ON windlass_jobs (correlation_id, id)
    WHERE status <> 'processing' AND correlation_id IS NOT NULL;
CREATE INDEX windlass_jobs_parent ON windlass_jobs (parent_id, id)
    WHERE status <> 'processing' AND parent_id IS NOT NULL;
CREATE INDEX windlass_jobs_schedule ON windlass_jobs (schedule, id)
    WHERE status <> 'processing' AND schedule IS NOT NULL;

CREATE TABLE windlass_idempotency (
    key text COLLATE "C" PRIMARY KEY, job_id text COLLATE "C" NOT NULL, expires_at timestamptz NOT NULL
);
CREATE INDEX windlass_idempotency_expiry ON windlass_idempotency (expires_at);

-- The names of queues, written with the first job of each. Not unique: a transaction that stays open after it was the
-- first to name a queue must not hold up everybody else's. A name that is there twice does no harm.
CREATE TABLE windlass_queues (name text COLLATE "C" NOT NULL);
CREATE INDEX windlass_queues_name ON windlass_queues (name);

CREATE TABLE windlass_queue_settings (name text COLLATE "C" PRIMARY KEY, paused_at timestamptz, max_depth integer);

-- What ended in each minute, counted in the transaction that ended it; in shards, so that workers do not wait for each
-- other at one row.
CREATE TABLE windlass_minutes (
    minute timestamptz NOT NULL,
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    bucket integer NOT NULL,
    shard integer NOT NULL,
    n bigint NOT NULL,
    duration_ms bigint NOT NULL,
    wait_ms bigint NOT NULL,
    PRIMARY KEY (minute, queue, type, status, bucket, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);

CREATE TABLE windlass_schedules (
    name text COLLATE "C" PRIMARY KEY,
    expression text NOT NULL,
    zone text NOT NULL,
    overlap text NOT NULL,
    missed text NOT NULL,
    missed_limit integer NOT NULL,
    type text NOT NULL,
    payload json NOT NULL,
    queue text NOT NULL,
    options json NOT NULL,
    next_tick timestamptz NOT NULL,
    last_tick timestamptz,
    paused_at timestamptz,
    declared boolean NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE windlass_ticks (
    schedule text COLLATE "C" NOT NULL,
    tick timestamptz NOT NULL,
    fired text NOT NULL,
    job_id text COLLATE "C",
    PRIMARY KEY (schedule, tick)
);

CREATE TABLE windlass_workers (
    id text COLLATE "C" PRIMARY KEY, described json NOT NULL, started_at timestamptz NOT NULL, beat_at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE windlass_locks (
    name text COLLATE "C" PRIMARY KEY, owner text NOT NULL, token bigint NOT NULL, expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);
-- One counter for all names, so that a lock's row can be pruned and its tokens still never fall.
INSERT INTO windlass_meta (key, value) VALUES ('lock_token', '0');

-- What tells this installation from any other: a caller's own transaction must be on the same.
INSERT INTO windlass_meta (key, value) VALUES ('identity', gen_random_uuid()::text);
