-- How long runs took and had waited, as two spreads in JSON. Rows that have it have -1 in the place of the bucket: to earlier
-- versions they are one bucket more, and what these write is read beside them.
ALTER TABLE windlass_minutes ADD COLUMN spreads TEXT;

-- What is noted from time to time, such as how much there is to do.
CREATE TABLE windlass_series (name TEXT NOT NULL, at INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (name, at));
