-- The instant that no job with a fair key which comes later may stand before, while this one is queued.
ALTER TABLE windlass_jobs ADD COLUMN floor timestamptz;
CREATE INDEX windlass_jobs_floor ON windlass_jobs ((queue || ''), priority, floor)
    WHERE status = 'queued' AND floor IS NOT NULL;
-- What has expired, for prune.
CREATE INDEX windlass_locks_expiry ON windlass_locks (expires_at);
-- What waits, in the order of the claim, and with the type: one that nobody asks for is passed over without a look at its
-- row, from PostgreSQL 17 on. It takes the place of the index without.
CREATE INDEX windlass_jobs_ready ON windlass_jobs (queue, priority, run_at, id, type) WHERE status = 'queued';
DROP INDEX windlass_jobs_claim;
-- What runs, in the order in which it began: what was claimed since some instant is found without a look at the rest. And
-- what a worker is asked to stop. They take the place of the index by worker.
CREATE INDEX windlass_jobs_running ON windlass_jobs (started_at) WHERE status = 'processing';
CREATE INDEX windlass_jobs_cancels ON windlass_jobs (worker_id)
    WHERE status = 'processing' AND cancel_requested_at IS NOT NULL;
DROP INDEX windlass_jobs_leases;
