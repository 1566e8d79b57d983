-- kept: what a job remembers from one attempt to the next, JSON texts by name. As the texts are strings in it, jsonb gives
-- them back exactly. origin: the first of the jobs that this one is a replay of. expires_at: if no worker has taken it by
-- then, it is cancelled.
ALTER TABLE windlass_jobs
    ADD COLUMN kept jsonb,
    ADD COLUMN origin text COLLATE "C",
    ADD COLUMN expires_at timestamptz;

-- A worker asks for all the types that it handles: to the planner none of them is to look rare, or it would rather sort what
-- an index by type gives than read the queue in its order.
ALTER TABLE windlass_jobs ALTER COLUMN type SET (n_distinct = 10);

-- When the time of those that wait for a signal is up, and of those that no worker has taken. Neither asks for a status,
-- by which they could be looked for among all others that have it.
CREATE INDEX windlass_jobs_signals ON windlass_jobs (run_at) WHERE starts_with(blocked_by, 'signal:');
CREATE INDEX windlass_jobs_expiry ON windlass_jobs (expires_at)
    WHERE expires_at IS NOT NULL AND lease_token = 0 AND finished_at IS NULL;

-- Which queues and types a key is good for, and what the application knows of its holder.
ALTER TABLE windlass_keys ADD COLUMN grants text;
