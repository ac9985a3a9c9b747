-- due_since
-- Walks along the primary key, and over one row more than it counts: whether that is of the same time says whether the count is whole.
SELECT count(*) FILTER (WHERE e.n <= $2 AND e.is_due) AS "due!",
       count(*) FILTER (WHERE e.n <= $2 AND e.is_due AND e.state = 'succeeded') AS "succeeded!",
       coalesce(bool_or(e.n > $2 AND e.is_claimed), false) AS "is_cut_short!"
FROM (SELECT x.state, row_number() OVER (ORDER BY x.id DESC) AS n,
             x.scheduled_for >= t.since AND x.scheduled_for < t.at AS is_due,
             x.claimed_at > t.since AS is_claimed
      FROM (SELECT id, state, scheduled_for, claimed_at FROM sexton.executions
            ORDER BY id DESC LIMIT $2::bigint + 1) x,
           (SELECT coalesce($3, now()) AS at,
                   coalesce($3, now()) - $1 * interval '1 second' AS since) t) e
