"""The connections over which the conformance cases run, one class per way to open a transaction."""

import os
from typing import Any, Dict, List

import asyncpg
import psycopg
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import sexton_client
import sexton_client.aio

URL = os.environ["DATABASE_URL"]


class Psycopg:
    """A psycopg connection in autocommit mode, on which the caller says BEGIN."""

    client: Any = sexton_client

    async def open(self) -> None:
        self.connection: Any = psycopg.connect(URL, autocommit=True, row_factory=psycopg.rows.dict_row)

    async def sql(self, statement: str, value: str) -> List[Any]:
        cursor = self.connection.execute(statement.replace(":value", "%s"), (value,))
        return [list(row.values())[0] for row in cursor.fetchall()] if cursor.description else []

    async def control(self, command: str, name: str) -> None:
        self.connection.execute(f"{command} {name}")

    async def settle(self, failed: bool) -> None:
        pass


class AsyncPsycopg(Psycopg):
    """An AsyncConnection of psycopg."""

    client = sexton_client.aio

    async def open(self) -> None:
        self.connection = await psycopg.AsyncConnection.connect(URL, autocommit=True)

    async def sql(self, statement: str, value: str) -> List[Any]:
        cursor = await self.connection.execute(statement.replace(":value", "%s"), (value,))
        return [row[0] for row in await cursor.fetchall()] if cursor.description else []

    async def control(self, command: str, name: str) -> None:
        await self.connection.execute(f"{command} {name}")


class Asyncpg(Psycopg):
    """An asyncpg connection with a JSON codec of the caller's, which must not disturb the client."""

    client = sexton_client.aio

    async def open(self) -> None:
        import json

        self.connection = await asyncpg.connect(URL)
        await self.connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")

    async def sql(self, statement: str, value: str) -> List[Any]:
        return [row[0] for row in await self.connection.fetch(statement.replace(":value", "$1"), value)]

    async def control(self, command: str, name: str) -> None:
        await self.connection.execute(f"{command} {name}")


class SqlalchemySession:
    """A Session of SQLAlchemy, which begins by itself; outside of a case's transaction each step is committed."""

    client: Any = sexton_client

    async def open(self) -> None:
        self.connection: Any = Session(create_engine(URL.replace("postgresql://", "postgresql+psycopg://")))
        self.savepoints: Dict[str, Any] = {}
        self.inside = False

    async def run(self, result: Any) -> Any:
        return result

    async def sql(self, statement: str, value: str) -> List[Any]:
        result = await self.run(self.connection.execute(text(statement), {"value": value}))
        return [row[0] for row in result] if result.returns_rows else []

    async def control(self, command: str, name: str) -> None:
        if command == "BEGIN":
            self.inside = True
        elif command == "SAVEPOINT":
            self.savepoints[name] = await self.run(self.connection.begin_nested())
        elif command == "ROLLBACK TO":
            await self.run(self.savepoints.pop(name).rollback())
        else:
            self.inside = False
            await self.run(self.connection.commit() if command == "COMMIT" else self.connection.rollback())

    async def settle(self, failed: bool) -> None:
        if not self.inside:
            await self.run(self.connection.rollback() if failed else self.connection.commit())


class SqlalchemyConnection(SqlalchemySession):
    """A Connection of SQLAlchemy."""

    async def open(self) -> None:
        await super().open()
        self.connection = create_engine(URL.replace("postgresql://", "postgresql+psycopg://")).connect()


class SqlalchemyAsyncSession(SqlalchemySession):
    """An AsyncSession of SQLAlchemy over asyncpg."""

    client = sexton_client.aio

    async def open(self) -> None:
        await super().open()
        self.connection = AsyncSession(create_async_engine(URL.replace("postgresql://", "postgresql+asyncpg://")))

    async def run(self, result: Any) -> Any:
        return await result


ALL = [Psycopg, AsyncPsycopg, Asyncpg, SqlalchemySession, SqlalchemyConnection, SqlalchemyAsyncSession]
