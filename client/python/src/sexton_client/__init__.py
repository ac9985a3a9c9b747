"""Enqueues Sexton jobs in the transaction of your own PostgreSQL connection.

The functions here are for psycopg and SQLAlchemy; sexton_client.aio has the same ones for async connections.
"""

from .client import cancel, demand, enqueue, enqueue_many, execution, execution_by_key, wait_for
from .errors import DeletedJob, InvalidArgument, InvalidParams, PausedJob, SextonError, TooManyItems, UnknownJob
from .items import IfExists, Item
from .results import Cancelled, Demand, Enqueued, Execution

__all__ = [
    "Cancelled",
    "DeletedJob",
    "Demand",
    "Enqueued",
    "Execution",
    "IfExists",
    "InvalidArgument",
    "InvalidParams",
    "Item",
    "PausedJob",
    "SextonError",
    "TooManyItems",
    "UnknownJob",
    "cancel",
    "demand",
    "enqueue",
    "enqueue_many",
    "execution",
    "execution_by_key",
    "wait_for",
]
