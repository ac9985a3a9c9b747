SET LOCAL lock_timeout = '3s';

-- Refused while there are bulks that cancel: their record would be lost.
ALTER TABLE sexton.bulks DROP CONSTRAINT bulks_kind_check,
    ADD CONSTRAINT bulks_kind_check CHECK (kind IN ('requeue', 'discard', 'restore'));
