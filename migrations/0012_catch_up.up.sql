-- How fast a catch-up begins, and catch-up that is held until an operator releases it.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

-- Nullable: no row is written. A version before knows nothing of it and lets catch-ups begin at once.
ALTER TABLE jobs ADD COLUMN misfire_rate text CHECK (misfire_rate ~ '^[1-9][0-9]{0,5}/[smhd]$');
COMMENT ON COLUMN jobs.misfire_rate IS 'How fast late firings begin with fire_all, such as 10/m: firings, and s, m, h or d; null: all at once.';

-- One row, or none before the first planner of this version looks. Planners of a version before do not
-- write it, so it stands still while only those run, and catch-up is held after them if that was long.
CREATE TABLE planner_clock (
    is_one  boolean PRIMARY KEY DEFAULT true CHECK (is_one),
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 50); -- Written every few seconds, without a new page.

COMMENT ON TABLE planner_clock IS 'The last instant at which a planner looked at the database''s clock: what a jump is measured from.';
COMMENT ON COLUMN planner_clock.is_one IS 'Always true: there is one row.';
COMMENT ON COLUMN planner_clock.seen_at IS 'By the database''s clock, some seconds old at the most while a planner runs.';

CREATE TABLE holds (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reason      text NOT NULL CHECK (reason IN ('forward', 'backward')),
    last_seen   timestamptz NOT NULL,
    noticed_at  timestamptz NOT NULL,
    noticed_by  text NOT NULL,
    released_at timestamptz,
    released_by text,
    released_as text CHECK (released_as IN ('released', 'discarded')),
    why         text,
    CHECK ((released_at IS NULL) = (released_by IS NULL) AND (released_at IS NULL) = (released_as IS NULL))
);
-- The guard against two holds at once.
CREATE UNIQUE INDEX holds_one ON holds ((true)) WHERE released_at IS NULL;

COMMENT ON TABLE holds IS 'Times in which catch-up is held: late firings are set aside. At most one has no end.';
COMMENT ON COLUMN holds.id IS 'Serial.';
COMMENT ON COLUMN holds.reason IS 'How the database''s time jumped: forward or backward.';
COMMENT ON COLUMN holds.last_seen IS 'planner_clock.seen_at before the jump.';
COMMENT ON COLUMN holds.noticed_at IS 'The database''s time after it.';
COMMENT ON COLUMN holds.noticed_by IS 'The scheduler that noticed it, as <instance>:<pid>.';
COMMENT ON COLUMN holds.released_at IS 'When an operator ended it; null: it holds.';
COMMENT ON COLUMN holds.released_by IS 'That operator.';
COMMENT ON COLUMN holds.released_as IS 'released: what was set aside was judged by its jobs'' policies; discarded: it became gaps.';
COMMENT ON COLUMN holds.why IS 'The operator''s reason, if given.';

CREATE TABLE held_firings (
    job_id       uuid NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    first_firing timestamptz NOT NULL,
    last_firing  timestamptz NOT NULL,
    count        integer NOT NULL CHECK (count >= 1),
    held_at      timestamptz NOT NULL,
    PRIMARY KEY (job_id, first_firing),
    CHECK (first_firing <= last_firing)
);

COMMENT ON TABLE held_firings IS 'Runs of late firings that were set aside while catch-up is held. Release or discard deletes them.';
COMMENT ON COLUMN held_firings.job_id IS 'The job.';
COMMENT ON COLUMN held_firings.first_firing IS 'Nominal time of the first.';
COMMENT ON COLUMN held_firings.last_firing IS 'Nominal time of the last.';
COMMENT ON COLUMN held_firings.count IS 'How many, both included.';
COMMENT ON COLUMN held_firings.held_at IS 'When they were set aside, by the database''s clock: as of when they are judged.';
