-- How long runs took and had waited: how many of each bucket, least and most. Rows that have it have -1 in the place of the
-- bucket: to earlier versions they are one bucket more, and what these write is read beside them.
ALTER TABLE windlass_minutes
    ADD COLUMN runs jsonb,
    ADD COLUMN waits jsonb,
    ADD COLUMN least_run bigint,
    ADD COLUMN most_run bigint,
    ADD COLUMN least_wait bigint,
    ADD COLUMN most_wait bigint;

-- What is noted from time to time, such as how much there is to do.
CREATE TABLE windlass_series (
    name text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (name, at)
);
