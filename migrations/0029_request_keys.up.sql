-- Keys of requests to the API, by which a request that is sent again is not carried out again.
SET LOCAL lock_timeout = '3s';

CREATE TABLE sexton.request_keys (
    caller      text NOT NULL CHECK (length(caller) <= 250),
    key         text NOT NULL CHECK (key ~ '^[!-~]{1,255}$'),
    request     bytea NOT NULL CHECK (length(request) = 32),
    created_at  timestamptz NOT NULL,
    finished_at timestamptz,
    status      smallint CHECK (status BETWEEN 100 AND 599),
    headers     jsonb,
    body        bytea CHECK (length(body) <= 65536),
    PRIMARY KEY (caller, key),
    CHECK ((status IS NULL) = (finished_at IS NULL)),
    CHECK (body IS NULL OR status IS NOT NULL)
);
CREATE INDEX request_keys_created_at ON sexton.request_keys (created_at);
COMMENT ON TABLE sexton.request_keys IS 'Keys of requests to the API, by which a request that is sent again is not carried out again.';
COMMENT ON COLUMN sexton.request_keys.caller IS 'Who sent it, by the name in the audit; each has keys of its own.';
COMMENT ON COLUMN sexton.request_keys.key IS 'Idempotency-Key.';
COMMENT ON COLUMN sexton.request_keys.request IS 'SHA-256 of the request.';
COMMENT ON COLUMN sexton.request_keys.created_at IS 'When it came, by the database''s clock; the key stands for it for 24 hours.';
COMMENT ON COLUMN sexton.request_keys.finished_at IS 'When it was answered; null: it was not, or the server ended before.';
COMMENT ON COLUMN sexton.request_keys.status IS 'The status of the answer; from 500 on nobody knows whether it was carried out.';
COMMENT ON COLUMN sexton.request_keys.headers IS 'Some headers of the answer.';
COMMENT ON COLUMN sexton.request_keys.body IS 'The answer; null: it is not kept.';
