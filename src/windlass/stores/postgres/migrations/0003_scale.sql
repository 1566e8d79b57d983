-- confirmed: the token of the last lease that an extension renewed. charged: that of the lease whose loss was last counted
-- as a crash, while it is. Neither is in an index, so that a heartbeat stays on the row's page.
ALTER TABLE windlass_jobs ADD COLUMN confirmed bigint, ADD COLUMN charged bigint;

-- When a rate's line is to be looked at again: as long as jobs wait there.
CREATE TABLE windlass_rate_lines (key text COLLATE "C" PRIMARY KEY, opens_at timestamptz NOT NULL)
    WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500);
CREATE INDEX windlass_rate_lines_opens ON windlass_rate_lines (opens_at);

-- What has been kept long enough is found without a look at the rest.
CREATE INDEX windlass_jobs_finished ON windlass_jobs (queue, status, finished_at) WHERE finished_at IS NOT NULL;
-- The first that waits with a fair key. A job without one that came while others waited has the key '' and is left out.
CREATE INDEX windlass_jobs_turns ON windlass_jobs ((queue || ''), priority, run_at)
    WHERE status = 'queued' AND fair_key > '';
-- With what is queued, the depth of a queue.
CREATE INDEX windlass_jobs_waiting ON windlass_jobs ((queue || ''))
    WHERE status IN ('scheduled', 'retrying', 'blocked');
CREATE INDEX windlass_schedules_due ON windlass_schedules (next_tick) WHERE paused_at IS NULL;
