"""What the functions answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, List, Optional, Sequence
from uuid import UUID


@dataclass(frozen=True)
class Enqueued:
    """The execution that a call created, or that had its key already."""

    execution_id: UUID
    key: str
    created: bool
    state: str
    #: The item's place in the list of enqueue_many, from 1.
    ordinal: int = 1

    @classmethod
    def from_row(cls, row: Sequence[Any], offset: int = 0) -> "Enqueued":
        return cls(UUID(row[1]), row[2], row[3], row[4], offset + row[0])


@dataclass(frozen=True)
class Cancelled:
    """Whether a call cancelled an execution; `execution_id` and `state` are None if none has the key."""

    execution_id: Optional[UUID]
    key: str
    cancelled: bool
    state: Optional[str]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Cancelled":
        return cls(UUID(row[0]) if row[0] else None, row[1], row[2], row[3])


@dataclass(frozen=True)
class Execution:
    """What has become of an execution."""

    execution_id: UUID
    job: str
    key: str
    state: str
    attempt: int
    scheduled_for: datetime
    started_at: Optional[datetime]
    finished_at: Optional[datetime]
    outcome: Optional[str]
    result: Any
    error_class: Optional[str]
    error_message: Optional[str]

    @property
    def ended(self) -> bool:
        """Whether nothing happens to it without an operator: it is neither waiting, nor running, nor retrying."""
        return self.state not in ("pending", "running", "retrying")

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Optional["Execution"]:
        if row[0] is None:
            return None
        values: List[Any] = list(row)
        values[0] = UUID(row[0])
        values[9] = None if row[9] is None else json.loads(row[9])
        return cls(*values)


@dataclass(frozen=True)
class Demand:
    """How much work a pool has."""

    pool: str
    waiting: int
    running: int
    oldest_wait: timedelta

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Demand":
        return cls(row[0], row[1], row[2], timedelta(microseconds=row[3]))
