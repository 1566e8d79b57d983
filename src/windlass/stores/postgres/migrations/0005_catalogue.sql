-- What workers handle: every version of every type that was told of lately.
CREATE TABLE windlass_types (
    type text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    declared text NOT NULL,
    version text,
    first_seen timestamptz NOT NULL,
    last_seen timestamptz NOT NULL,
    announced_at timestamptz NOT NULL,
    PRIMARY KEY (type, fingerprint)
);
CREATE INDEX windlass_types_seen ON windlass_types (last_seen);

-- What lets programs and people in: of a secret only its SHA-256.
CREATE TABLE windlass_keys (
    id text COLLATE "C" PRIMARY KEY,
    hash text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    owner text NOT NULL,
    name text NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    used_at timestamptz,
    revoked_at timestamptz
);
CREATE UNIQUE INDEX windlass_keys_hash ON windlass_keys (hash);
-- Expired sessions, deleted when the next key is stored.
CREATE INDEX windlass_keys_expiry ON windlass_keys (expires_at) WHERE kind = 'session' AND expires_at IS NOT NULL;
CREATE INDEX windlass_keys_revoked ON windlass_keys (revoked_at) WHERE kind = 'session' AND revoked_at IS NOT NULL;

-- Who did what to what.
CREATE TABLE windlass_audit (
    id text COLLATE "C" PRIMARY KEY,
    at timestamptz NOT NULL,
    actor text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    origin text,
    details text
);
CREATE INDEX windlass_audit_at ON windlass_audit (at, id);
CREATE INDEX windlass_audit_actor ON windlass_audit (actor, at, id);
CREATE INDEX windlass_audit_action ON windlass_audit (action, at, id);
CREATE INDEX windlass_audit_object ON windlass_audit (object, at, id);
