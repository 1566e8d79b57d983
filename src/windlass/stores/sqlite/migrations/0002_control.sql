ALTER TABLE windlass_jobs ADD COLUMN rate_key TEXT;
ALTER TABLE windlass_jobs ADD COLUMN rate_n INTEGER;
ALTER TABLE windlass_jobs ADD COLUMN rate_ms INTEGER;
ALTER TABLE windlass_jobs ADD COLUMN fair_key TEXT;
ALTER TABLE windlass_jobs ADD COLUMN next_id TEXT;
ALTER TABLE windlass_jobs ADD COLUMN awaits TEXT;
ALTER TABLE windlass_jobs ADD COLUMN takes TEXT;

-- Turns: where a queue's fair jobs stand, and the last of each key.
CREATE INDEX windlass_jobs_turn ON windlass_jobs (queue, priority, run_at) WHERE status = 'queued' AND fair_key IS NOT NULL;
CREATE INDEX windlass_jobs_fair ON windlass_jobs (queue, priority, fair_key, run_at)
    WHERE status = 'queued' AND fair_key IS NOT NULL;
-- Queued jobs that were called from the line of their rate.
CREATE INDEX windlass_jobs_called ON windlass_jobs (blocked_by) WHERE status = 'queued' AND blocked_by IS NOT NULL;
CREATE INDEX windlass_jobs_next ON windlass_jobs (next_id, id) WHERE next_id IS NOT NULL;

-- How many jobs of a rate started, by the part of the window that they are booked under.
CREATE TABLE windlass_rates (key TEXT NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (key, at)) WITHOUT ROWID;

ALTER TABLE windlass_ticks ADD COLUMN ticks INTEGER NOT NULL DEFAULT 1;
