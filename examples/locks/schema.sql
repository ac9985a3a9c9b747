-- What the services of this folder write. No constraint keeps a tick from running twice: the guard does.
CREATE TABLE cleanups (
    tick timestamptz NOT NULL,
    service text NOT NULL,
    ran_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What the program with the outbox reads and writes.
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, cents int NOT NULL, taken_at timestamptz);
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY, event jsonb NOT NULL);
