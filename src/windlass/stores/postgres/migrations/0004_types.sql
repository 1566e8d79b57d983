-- What waits, in the order of the claim, and with the type: one that nobody asks for is passed over without a look at its
-- row, from PostgreSQL 17 on. It takes the place of the index without.
CREATE INDEX windlass_jobs_ready ON windlass_jobs (queue, priority, run_at, id, type) WHERE status = 'queued';
DROP INDEX windlass_jobs_claim;
