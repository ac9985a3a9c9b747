DROP FUNCTION sexton.enqueue(text, jsonb, text, timestamptz, interval, text, text, jsonb),
    sexton.enqueue_many(text, jsonb);
