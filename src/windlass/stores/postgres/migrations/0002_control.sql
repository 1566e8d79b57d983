ALTER TABLE windlass_jobs
    ADD COLUMN rate_key text COLLATE "C",
    ADD COLUMN rate_n integer,
    ADD COLUMN rate_ms bigint,
    ADD COLUMN fair_key text COLLATE "C",
    ADD COLUMN next_id text COLLATE "C",
    ADD COLUMN awaits text COLLATE "C",
    ADD COLUMN takes text;

-- A job without a rate, a turn or a flow is in none of these.
-- Turns: where a queue's fair jobs stand, and the last of each key. The queue is an expression in the first, as the status
-- is further down, so that no other index, in which these jobs may lie far apart, can be taken in its place.
CREATE INDEX windlass_jobs_turn ON windlass_jobs ((queue || ''), priority, run_at)
    WHERE status = 'queued' AND fair_key IS NOT NULL;
CREATE INDEX windlass_jobs_fair ON windlass_jobs (fair_key, queue, priority, run_at)
    WHERE status = 'queued' AND fair_key IS NOT NULL;
-- Queued jobs that were called from the line of their rate.
CREATE INDEX windlass_jobs_called ON windlass_jobs (blocked_by) WHERE status = 'queued' AND blocked_by IS NOT NULL;
-- How the jobs stand that another awaits, and the list of them, newest first.
CREATE INDEX windlass_jobs_awaited ON windlass_jobs (next_id, (status || ''), id) WHERE next_id IS NOT NULL;
CREATE INDEX windlass_jobs_next ON windlass_jobs (next_id, id) WHERE status <> 'processing' AND next_id IS NOT NULL;

-- How many jobs of a rate started, by the part of the window that they are booked under.
CREATE TABLE windlass_rates (
    key text COLLATE "C" NOT NULL, at timestamptz NOT NULL, n integer NOT NULL, PRIMARY KEY (key, at)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);
CREATE INDEX windlass_rates_at ON windlass_rates (at);

ALTER TABLE windlass_ticks ADD COLUMN ticks integer NOT NULL DEFAULT 1;
