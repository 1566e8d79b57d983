-- What workers handle: every version of every type that was told of lately.
CREATE TABLE windlass_types (
    type TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    declared TEXT NOT NULL,
    version TEXT,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    announced_at INTEGER NOT NULL,
    PRIMARY KEY (type, fingerprint)
) WITHOUT ROWID;
CREATE INDEX windlass_types_seen ON windlass_types (last_seen);

-- What lets programs and people in: of a secret only its SHA-256.
CREATE TABLE windlass_keys (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    used_at INTEGER,
    revoked_at INTEGER
) WITHOUT ROWID;
-- Expired sessions, deleted when the next key is stored.
CREATE INDEX windlass_keys_expiry ON windlass_keys (expires_at) WHERE kind = 'session' AND expires_at IS NOT NULL;
CREATE INDEX windlass_keys_revoked ON windlass_keys (revoked_at) WHERE kind = 'session' AND revoked_at IS NOT NULL;

-- Who did what to what.
CREATE TABLE windlass_audit (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    object TEXT NOT NULL,
    origin TEXT,
    details TEXT
) WITHOUT ROWID;
CREATE INDEX windlass_audit_at ON windlass_audit (at, id);
CREATE INDEX windlass_audit_actor ON windlass_audit (actor, at, id);
CREATE INDEX windlass_audit_action ON windlass_audit (action, at, id);
CREATE INDEX windlass_audit_object ON windlass_audit (object, at, id);
