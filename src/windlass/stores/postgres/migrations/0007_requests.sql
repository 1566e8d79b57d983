-- What was asked under an idempotency key, and what was answered.
CREATE TABLE windlass_requests (
    id text COLLATE "C" PRIMARY KEY,
    fingerprint text COLLATE "C" NOT NULL,
    first_id text COLLATE "C" NOT NULL,
    mark text COLLATE "C" NOT NULL,
    held_until timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    answer text
);
CREATE INDEX windlass_requests_expiry ON windlass_requests (expires_at);
