"""The SQL statements that call Sexton's functions.

Every value is passed as text and converted by PostgreSQL, so that no driver's or caller's type adaptation matters.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple
from uuid import UUID

from .errors import InvalidArgument, InvalidParams

#: How many items one call of sexton.enqueue_many takes.
MAX_BATCH_ITEMS = 10_000


class Statement(NamedTuple):
    """A statement with a `?` for each value."""

    sql: str
    values: Tuple[Optional[str], ...]


def _as(sql_type: str) -> str:
    # The inner cast makes every driver send text; the outer one has PostgreSQL read it.
    return f"CAST(CAST(? AS text) AS {sql_type})"


_EXECUTION = (
    "CAST(execution_id AS text), job, key, state, attempt, scheduled_for, started_at, finished_at, outcome, "
    "CAST(result AS text), error_class, error_message"
)
_ENQUEUE = (
    "SELECT 1, CAST(execution_id AS text), key, created, state FROM sexton.enqueue("
    f"job => {_as('text')}, params => {_as('jsonb')}, key => {_as('text')}, run_at => {_as('timestamptz')}, "
    f"delay => {_as('interval')}, unique_for => {_as('text')}, if_exists => {_as('text')}, labels => {_as('jsonb')})"
)
_ENQUEUE_MANY = (
    "SELECT ordinal, CAST(execution_id AS text), key, created, state "
    f"FROM sexton.enqueue_many(job => {_as('text')}, items => {_as('jsonb')}) ORDER BY ordinal"
)
_CANCEL = (
    "SELECT CAST(execution_id AS text), key, cancelled, state "
    f"FROM sexton.cancel(job => {_as('text')}, key => {_as('text')}, reason => {_as('text')})"
)
_DEMAND = (
    "SELECT pool, waiting, running, CAST(extract(epoch FROM oldest_wait) * 1000000 AS bigint) "
    f"FROM sexton.demand(pool => {_as('text')})"
)


def _json(value: Any) -> Optional[str]:
    if value is None:
        return None
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidParams(f"not JSON: {error}", hint="Pass dict, list, str, int, float, bool and None.") from error


def _time(value: Optional[datetime]) -> Optional[str]:
    if value is not None and value.utcoffset() is None:
        raise InvalidArgument("run_at has no time zone", hint="Pass an aware datetime, such as datetime.now(timezone.utc).")
    return None if value is None else value.isoformat()


def _interval(value: Optional[timedelta]) -> Optional[str]:
    # Microseconds alone: a day of PostgreSQL is not always 24 hours.
    return None if value is None else f"{value // timedelta(microseconds=1)} microseconds"


def enqueue(
    job: str,
    params: Optional[Mapping[str, Any]],
    key: Optional[str],
    run_at: Optional[datetime],
    delay: Optional[timedelta],
    unique_for: str,
    if_exists: str,
    labels: Optional[Mapping[str, str]],
) -> Statement:
    values = (job, _json(params), key, _time(run_at), _interval(delay), unique_for, if_exists, _json(labels))
    return Statement(_ENQUEUE, values)


def enqueue_many(job: str, items: Iterable[Mapping[str, Any]], batch_size: int) -> Iterator[Tuple[int, Statement]]:
    """The statements for a list of items, each with the number of items before it."""
    offset = 0
    batch: List[Any] = []
    for item in items:
        batch.append(dict(item, run_at=_time(item.get("run_at")), delay=_interval(item.get("delay"))))
        if len(batch) == batch_size:
            yield offset, Statement(_ENQUEUE_MANY, (job, _json(batch)))
            offset, batch = offset + len(batch), []
    if batch or offset == 0:
        yield offset, Statement(_ENQUEUE_MANY, (job, _json(batch)))


def cancel(job: str, key: str, reason: Optional[str]) -> Statement:
    return Statement(_CANCEL, (job, key, reason))


def execution(execution_id: UUID) -> Statement:
    return Statement(f"SELECT {_EXECUTION} FROM sexton.execution(execution_id => {_as('uuid')})", (str(execution_id),))


def execution_by_key(job: str, key: str) -> Statement:
    return Statement(f"SELECT {_EXECUTION} FROM sexton.execution(job => {_as('text')}, key => {_as('text')})", (job, key))


def demand(pool: str) -> Statement:
    return Statement(_DEMAND, (pool,))
