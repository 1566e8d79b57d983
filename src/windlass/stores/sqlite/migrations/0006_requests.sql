-- What was asked under an idempotency key, and what was answered.
CREATE TABLE windlass_requests (
    id TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    first_id TEXT NOT NULL,
    mark TEXT NOT NULL,
    held_until INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    answer TEXT
);
CREATE INDEX windlass_requests_expiry ON windlass_requests (expires_at);
