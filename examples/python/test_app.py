"""Places orders through the application, on the database of DATABASE_URL."""

import json
import os
import pathlib
import uuid

import psycopg
from fastapi.testclient import TestClient

URL = os.environ["DATABASE_URL"]
SCHEMA = f"shop_{uuid.uuid4().hex[:12]}"
# The application finds its table in a schema of this run.
os.environ["DATABASE_URL"] = f"{URL}{'&' if '?' in URL else '?'}options=-csearch_path%3D{SCHEMA}"

from app import app  # noqa: E402

connection = psycopg.connect(URL, autocommit=True)
connection.execute(f"CREATE SCHEMA {SCHEMA}")
# Ids that no earlier run has used in its keys.
first = uuid.uuid4().int % 10**15 + 1
connection.execute(
    f"CREATE TABLE {SCHEMA}.orders (id bigint GENERATED ALWAYS AS IDENTITY (START WITH {first}), cents int)"
)
if not connection.execute("SELECT 1 FROM sexton.jobs WHERE name = 'billing.charge'").fetchone():
    cases = json.loads((pathlib.Path(__file__).parents[2] / "client" / "conformance.json").read_text("utf-8"))
    job = json.dumps({"name": "billing.charge", "pool": "default"})
    connection.execute(cases["sql"]["create_job"].replace(":value", "%s"), (job,))

try:
    client = TestClient(app, raise_server_exceptions=False)
    answer = client.post("/orders", json={"cents": 4200})
    assert answer.status_code == 201, answer.text
    key, params = connection.execute(
        "SELECT execution_key, params FROM sexton.executions WHERE id = %s", (answer.json()["execution"],)
    ).fetchone()
    assert key == f"order-{answer.json()['order']}"
    assert params["cents"] == 4200
    connection.execute("UPDATE sexton.jobs SET status = 'paused', paused_at = now() WHERE name = 'billing.charge'")
    refused = client.post("/orders", json={"cents": 100})
    assert refused.status_code == 503, refused.text
    assert connection.execute(f"SELECT count(*) FROM {SCHEMA}.orders").fetchone()[0] == 1, "the refused order was kept"
finally:
    connection.execute("UPDATE sexton.jobs SET status = 'active', paused_at = NULL WHERE name = 'billing.charge'")
    connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")
print("1 passed, 0 failed")
