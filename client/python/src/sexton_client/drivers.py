"""Runs a statement on the caller's connection, whatever its driver. Nothing here begins, commits or rolls back."""

from __future__ import annotations

from typing import Any, List, Sequence

from .errors import from_driver
from .statements import Statement


def _library(connection: Any) -> str:
    """The library that a connection comes from; subclasses and proxies count as what they are made from."""
    for base in type(connection).__mro__:
        if base.__module__.startswith("sqlalchemy.ext.asyncio") and hasattr(connection, "execute"):
            return "sqlalchemy async"
        if base.__module__.startswith("sqlalchemy.") and hasattr(connection, "execute"):
            return "sqlalchemy"
        if base.__module__.startswith("asyncpg.") and hasattr(connection, "transaction"):
            return "asyncpg"
        if base.__module__.split(".")[0] == "psycopg":
            # The names are those of psycopg's classes, from which a subclass inherits.
            return {"AsyncConnection": "psycopg async", "Connection": "psycopg"}.get(base.__name__, "psycopg other")
    return "other"


def _numbered(statement: Statement, prefix: str) -> str:
    pieces = statement.sql.split("?")
    return "".join(f"{piece}{prefix}{n}" for n, piece in enumerate(pieces[:-1], 1)) + pieces[-1]


def _sqlalchemy_arguments(statement: Statement) -> Any:
    from sqlalchemy import text

    return text(_numbered(statement, ":v")), {f"v{n}": value for n, value in enumerate(statement.values, 1)}


def fetch(connection: Any, statement: Statement) -> Sequence[Any]:
    """The rows of a statement on a psycopg Connection, or on a Session or Connection of SQLAlchemy."""
    library = _library(connection)
    try:
        if library == "sqlalchemy":
            return list(connection.execute(*_sqlalchemy_arguments(statement)).all())
        if library == "psycopg":
            from psycopg import Cursor
            from psycopg.rows import tuple_row

            # Not connection.cursor(): the caller may have chosen another class of cursors or rows.
            with Cursor(connection, row_factory=tuple_row) as cursor:
                return cursor.execute(statement.sql.replace("?", "%s"), statement.values).fetchall()
    except Exception as error:
        refused = from_driver(error)
        if refused is None:
            raise
        raise refused from error
    raise TypeError(f"{type(connection)!r} is no connection or session; for async ones use sexton_client.aio")


async def fetch_async(connection: Any, statement: Statement) -> Sequence[Any]:
    """The rows of a statement on an AsyncConnection of psycopg, an asyncpg connection, or SQLAlchemy's async classes."""
    library = _library(connection)
    try:
        if library == "sqlalchemy async":
            return list((await connection.execute(*_sqlalchemy_arguments(statement))).all())
        if library == "asyncpg":
            rows: List[Any] = await connection.fetch(_numbered(statement, "$"), *statement.values)
            return rows
        if library == "psycopg async":
            from psycopg import AsyncCursor
            from psycopg.rows import tuple_row

            async with AsyncCursor(connection, row_factory=tuple_row) as cursor:
                await cursor.execute(statement.sql.replace("?", "%s"), statement.values)
                return await cursor.fetchall()
    except Exception as error:
        refused = from_driver(error)
        if refused is None:
            raise
        raise refused from error
    raise TypeError(f"{type(connection)!r} is no async connection or session; for others use sexton_client")
