"""The same functions for asyncpg, AsyncConnection of psycopg, and AsyncSession and AsyncConnection of SQLAlchemy.

They run in the caller's transaction, and never commit it.
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from typing import Any, Iterable, List, Mapping, Optional
from uuid import UUID

from . import statements
from .drivers import fetch_async
from .errors import SextonError
from .items import IfExists, Item
from .results import Cancelled, Demand, Enqueued, Execution
from .waiting import intervals, is_over


async def enqueue(
    connection: Any,
    job: str,
    params: Optional[Mapping[str, Any]] = None,
    *,
    key: Optional[str] = None,
    run_at: Optional[datetime] = None,
    delay: Optional[timedelta] = None,
    unique_for: str = "ever",
    if_exists: IfExists = "keep",
    labels: Optional[Mapping[str, str]] = None,
) -> Enqueued:
    """Enqueues one execution of a job; a key that is taken is answered with the execution that has it."""
    statement = statements.enqueue(job, params, key, run_at, delay, unique_for, if_exists, labels)
    return Enqueued.from_row((await fetch_async(connection, statement))[0])


async def enqueue_many(
    connection: Any, job: str, items: Iterable[Item], *, batch_size: int = statements.MAX_BATCH_ITEMS
) -> List[Enqueued]:
    """Enqueues one execution per item, in as many calls as needed; they are one unit only inside a transaction."""
    answers: List[Enqueued] = []
    for offset, statement in statements.enqueue_many(job, items, batch_size):
        try:
            answers += [Enqueued.from_row(row, offset) for row in await fetch_async(connection, statement)]
        except SextonError as error:
            error.first_item += offset
            raise
    return answers


async def cancel(connection: Any, job: str, key: str, reason: Optional[str] = None) -> Cancelled:
    """Cancels the execution that has this key if it waits, or asks its worker to end it if it runs."""
    return Cancelled.from_row((await fetch_async(connection, statements.cancel(job, key, reason)))[0])


async def execution(connection: Any, execution_id: UUID) -> Optional[Execution]:
    """Returns what has become of an execution; None if there is no such execution."""
    return Execution.from_row((await fetch_async(connection, statements.execution(execution_id)))[0])


async def execution_by_key(connection: Any, job: str, key: str) -> Optional[Execution]:
    """Returns what has become of the execution of a job that has this key; None if there is none."""
    return Execution.from_row((await fetch_async(connection, statements.execution_by_key(job, key)))[0])


async def demand(connection: Any, pool: str) -> Demand:
    """Returns how much work a pool has."""
    return Demand.from_row((await fetch_async(connection, statements.demand(pool)))[0])


async def wait_for(connection: Any, execution_id: UUID, timeout: float) -> Execution:
    """Returns an execution when it has ended; TimeoutError after `timeout` seconds, LookupError if there is none.

    Call it after the transaction that enqueued has committed, and on a connection in autocommit mode: until the
    commit nothing runs, and a transaction that stays open for the wait holds back VACUUM.
    """
    deadline = time.monotonic() + timeout
    for seconds in intervals():
        found = await execution(connection, execution_id)
        if is_over(found, execution_id):
            assert found is not None
            return found
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"execution {execution_id} has not ended within {timeout} s")
        await asyncio.sleep(min(seconds, left))
    raise AssertionError("unreachable")
