"""Runs client/conformance.json over every connection; client/README.md describes the file."""

import asyncio
import inspect
import json
import sys
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Dict, List

import connections
from sexton_client import SextonError, errors

FILE = Path(__file__).parents[2] / "conformance.json"
COMMANDS = {
    "begin": "BEGIN",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "savepoint": "SAVEPOINT",
    "rollback_to": "ROLLBACK TO",
}


def in_seconds(seconds: float) -> datetime:
    return datetime.now(timezone.utc) + timedelta(seconds=seconds)


class Case:
    """One case of the file with what its steps have remembered."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.remembered: Dict[str, Any] = {}

    def value(self, given: Any) -> Any:
        """A value of the file, with its references and generators replaced."""
        if isinstance(given, str) and given.startswith("$"):
            name, *path = given[1:].split(".")
            found = self.remembered[name]
            for step in path:
                found = found[int(step) - 1] if step.isdigit() else getattr(found, step)
            return found
        if isinstance(given, list):
            return [self.value(item) for item in given]
        if not isinstance(given, dict):
            return given
        if "$integer" in given:
            return int(given["$integer"])
        if "$repeat" in given:
            return given["$repeat"] * given["times"]
        if "$nest" in given:
            nested: Any = {}
            for _ in range(given["$nest"] - 1):
                nested = {"n": nested}
            return nested
        if "$items" in given:
            return [{"key": f"{given['key']}{n}"} for n in range(1, given["$items"] + 1)]
        return {key: self.value(item) for key, item in given.items()}

    def arguments(self, given: Dict[str, Any]) -> Dict[str, Any]:
        arguments = {key: self.value(item) for key, item in given.items()}
        if "run_at_seconds" in arguments:
            arguments["run_at"] = in_seconds(arguments.pop("run_at_seconds"))
        if "delay_seconds" in arguments:
            arguments["delay"] = timedelta(seconds=arguments.pop("delay_seconds"))
        if "timeout_seconds" in arguments:
            arguments["timeout"] = arguments.pop("timeout_seconds")
        return arguments

    def check(self, expected: Any, found: Any, place: str) -> None:
        """Fails unless what was found is as expected."""
        if isinstance(expected, dict) and "$present" in expected:
            assert found is not None, f"{place} is missing"
        elif isinstance(expected, dict) and "$differs" in expected:
            assert str(found) != str(self.value(expected["$differs"])), f"{place} is {found} again"
        elif isinstance(expected, dict) and "$in_seconds" in expected:
            low, high = (in_seconds(seconds) for seconds in expected["$in_seconds"])
            assert low <= found <= high, f"{place} is {found}"
        elif isinstance(expected, dict) and "$plus" in expected:
            self.check(self.value(expected["$plus"][0]) + expected["$plus"][1], found, place)
        elif isinstance(expected, dict):
            assert found is not None, f"{place} is None"
            for key, item in expected.items():
                self.check(item, getattr(found, key), f"{place}.{key}")
        elif isinstance(expected, list):
            assert len(found) == len(expected), f"{place} has {len(found)} entries"
            for n, (one, other) in enumerate(zip(expected, found)):
                self.check(one, other, f"{place}[{n + 1}]")
        else:
            wanted = self.value(expected)
            if isinstance(found, timedelta):
                found = found.total_seconds()
            if isinstance(found, uuid.UUID):
                found, wanted = str(found), str(wanted)
            assert found == wanted, f"{place} is {found!r}, not {wanted!r}"

    async def step(self, step: Dict[str, Any]) -> None:
        do = step["do"]
        if do in COMMANDS:
            await self.connection.control(COMMANDS[do], step.get("name", ""))
            return
        meta = ("do", "as", "expect", "expect_error", "expect_count", "expect_timeout")
        arguments = self.arguments({key: item for key, item in step.items() if key not in meta})
        if do == "stored":
            sql = CASES["sql"]["stored"]
            found = json.loads((await self.connection.sql(sql, str(arguments["execution_id"])))[0])
            assert found == self.value(step["expect"]), f"stored is {found}"
            return
        if do == "enqueue_many":
            arguments["items"] = [self.arguments(item) for item in arguments["items"]]
        if do == "execution" and "key" in arguments:
            do = "execution_by_key"
        if do == "execution" and isinstance(arguments["execution_id"], str):
            arguments["execution_id"] = uuid.UUID(arguments["execution_id"])
        expected_error = step.get("expect_error")
        try:
            found = getattr(self.connection.client, do)(self.connection.connection, **arguments)
            if inspect.isawaitable(found):
                found = await found
        except SextonError as error:
            await self.connection.settle(True)
            assert expected_error, f"{do}: {error!r}"
            assert error.sqlstate == expected_error["sqlstate"], f"{do}: {error!r}"
            assert type(error) is errors._CLASSES[error.sqlstate]
            assert bool(error.hint) == expected_error["hint"], f"{do}: hint {error.hint!r}"
            assert bool(error.detail) or not expected_error.get("detail"), f"{do}: detail {error.detail!r}"
            assert error.first_item == expected_error.get("first_item", 1)
            return
        except TimeoutError as error:
            await self.connection.settle(True)
            assert "expect_timeout" in step, f"{do}: {error!r}"
            return
        await self.connection.settle(False)
        assert not expected_error and "expect_timeout" not in step, f"{do}: no error but {found}"
        self.remembered[step.get("as", "")] = found
        if "expect_count" in step:
            assert [item.ordinal for item in found] == list(range(1, step["expect_count"] + 1))
        if "expect" in step:
            if step["expect"] is None:
                assert found is None, f"{do}: {found}"
            else:
                self.check(step["expect"], found, do)


async def run(kind: Any) -> List[bool]:
    """Runs all cases over one kind of connection."""
    global CASES
    name = f"conformance-{uuid.uuid4().hex[:12]}"
    CASES = json.loads(FILE.read_text("utf-8").replace("{run}", name))
    passed = []
    setup = kind()
    await setup.open()
    for job in CASES["jobs"]:
        await setup.sql(CASES["sql"]["create_job"], json.dumps(job))
        await setup.settle(False)
    for case in CASES["cases"]:
        connection = kind()
        await connection.open()
        try:
            running = Case(connection)
            for n, step in enumerate(case["steps"], 1):
                place = f"step {n}"
                await running.step(step)
            passed.append(True)
        except Exception as error:
            print(f"FAILED {kind.__name__}: {case['name']}, {place}: {type(error).__name__}: {error}")
            passed.append(False)
        closing = connection.connection.close()
        if inspect.isawaitable(closing):
            await closing
    print(f"{kind.__name__}: {sum(passed)} of {len(passed)} cases")
    return passed


async def main() -> None:
    results = [passed for kind in connections.ALL for passed in await run(kind)]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if results and all(results) else 1)


CASES: Dict[str, Any] = {}
if __name__ == "__main__":
    asyncio.run(main())
