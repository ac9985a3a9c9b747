"""What a caller passes for an execution."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Literal, Mapping, Optional, TypedDict

IfExists = Literal["keep", "replace", "postpone"]


class Item(TypedDict, total=False):
    """One item of enqueue_many: the arguments of enqueue, all of them optional."""

    params: Optional[Mapping[str, Any]]
    key: Optional[str]
    run_at: Optional[datetime]
    delay: Optional[timedelta]
    unique_for: str
    if_exists: IfExists
    labels: Optional[Mapping[str, str]]
