"""The errors by which Sexton refuses a call."""

from __future__ import annotations

from typing import Any, Optional


class SextonError(Exception):
    """A call that Sexton refused; nothing was enqueued or cancelled.

    `sqlstate` is None if the client refused the call before it reached the database. Other database errors, such as
    a lost connection or a serialization failure, stay the driver's own.
    """

    def __init__(
        self,
        message: str,
        sqlstate: Optional[str] = None,
        hint: Optional[str] = None,
        detail: Optional[str] = None,
    ) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.hint = hint
        self.detail = detail
        # The place in the caller's list of the item that `detail` counts as item 1.
        self.first_item = 1


class UnknownJob(SextonError):
    """There is no job of this name (SX001)."""


class DeletedJob(SextonError):
    """The job was deleted (SX002)."""


class PausedJob(SextonError):
    """The job is paused (SX003)."""


class InvalidArgument(SextonError):
    """An argument is wrong, for example an empty key (SX010)."""


class InvalidParams(SextonError):
    """The params break a limit (SX011), or violate the schema of the task (SX012)."""


class TooManyItems(SextonError):
    """One call has more than 10,000 items (SX020)."""


_CLASSES = {
    "SX001": UnknownJob,
    "SX002": DeletedJob,
    "SX003": PausedJob,
    "SX010": InvalidArgument,
    "SX011": InvalidParams,
    "SX012": InvalidParams,
    "SX020": TooManyItems,
}


def from_driver(error: BaseException) -> Optional[SextonError]:
    """Returns the SextonError for a driver's error; None if it isn't one of Sexton's."""
    found: Any = error
    # SQLAlchemy wraps the driver's error, and its asyncpg dialect wraps it twice.
    for _ in range(3):
        state = getattr(found, "sqlstate", None) or getattr(found, "pgcode", None)
        diagnostics = getattr(found, "diag", found)
        message = getattr(diagnostics, "message_primary", None) or getattr(diagnostics, "message", None)
        if isinstance(state, str) and message:
            if not state.startswith("SX"):
                return None
            return _CLASSES.get(state, SextonError)(
                message,
                state,
                getattr(diagnostics, "message_hint", None) or getattr(diagnostics, "hint", None),
                getattr(diagnostics, "message_detail", None) or getattr(diagnostics, "detail", None),
            )
        found = getattr(found, "orig", None) or getattr(found, "__cause__", None)
    return None
