"""When wait_for looks again."""

from __future__ import annotations

from typing import Iterator, Optional
from uuid import UUID

from .results import Execution


def intervals() -> Iterator[float]:
    """The seconds between looks: 50 ms at first, then half as long again each time, up to 1 s."""
    seconds = 0.05
    while True:
        yield seconds
        seconds = min(1.0, seconds * 1.5)


def is_over(found: Optional[Execution], execution_id: UUID) -> bool:
    """Whether the wait is over; LookupError if there is no such execution."""
    if found is None:
        raise LookupError(f"no execution {execution_id}: its transaction has not committed, or it was removed")
    return found.ended
