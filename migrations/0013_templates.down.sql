SET LOCAL lock_timeout = '3s';

DROP TRIGGER mark_templates ON sexton.jobs;
ALTER TABLE sexton.jobs DROP templated;
DROP FUNCTION sexton.mark_templates(), sexton.filled_execution(jsonb, jsonb, text, jsonb), sexton.filled_key(text, jsonb),
    sexton.filled(jsonb, jsonb), sexton.filled_text(text, jsonb), sexton.format_instant(timestamptz, text, text),
    sexton.template_values(text, text, text, timestamptz, timestamptz, jsonb);
