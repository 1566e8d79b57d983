-- What a job remembers from one attempt to the next: an object of JSON texts by name.
ALTER TABLE windlass_jobs ADD COLUMN kept TEXT;
-- The first of the jobs that this one is a replay of.
ALTER TABLE windlass_jobs ADD COLUMN origin TEXT;
-- If no worker has taken it by then, it is cancelled.
ALTER TABLE windlass_jobs ADD COLUMN expires_at INTEGER;

-- Whose time to wait for a signal is up, and whose time to begin is over.
CREATE INDEX windlass_jobs_signals ON windlass_jobs (run_at)
WHERE status = 'blocked' AND blocked_by >= 'signal:' AND blocked_by < 'signal;';
CREATE INDEX windlass_jobs_expiry ON windlass_jobs (expires_at)
WHERE expires_at IS NOT NULL AND lease_token = 0 AND finished_at IS NULL;

-- Which queues and types a key is good for, and what the application knows of its holder.
ALTER TABLE windlass_keys ADD COLUMN grants TEXT;
