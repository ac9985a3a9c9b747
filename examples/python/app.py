"""Takes orders: each order and the job that charges it are written in one transaction."""

import os

import psycopg
import sexton_client
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

app = FastAPI()


class NewOrder(BaseModel):
    cents: int


@app.post("/orders", status_code=201)
def create_order(new: NewOrder) -> dict:
    try:
        # Leaving the block commits, an exception rolls back.
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
            row = connection.execute("INSERT INTO orders (cents) VALUES (%s) RETURNING id", (new.cents,)).fetchone()
            order = row[0]
            charge = sexton_client.enqueue(
                connection, "billing.charge", {"order": order, "cents": new.cents}, key=f"order-{order}"
            )
    except sexton_client.PausedJob as error:
        raise HTTPException(503, "billing is paused; try again later") from error
    return {"order": order, "execution": str(charge.execution_id)}
