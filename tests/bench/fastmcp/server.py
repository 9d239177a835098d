"""The server that tollgate's durable writes are compared with in Python: FastMCP over stdio, and sqlite3
with synchronous=FULL. Each call inserts the rows that creating a task leaves, with a new id, and commits.

usage: python server.py DATABASE ROWS, ROWS being {"schema": [SQL], "inserts": [{sql, values, ids}]}
"""

import json
import sqlite3
import sys
import uuid

from fastmcp import FastMCP
from pydantic import BaseModel

path, rows_path = sys.argv[1:3]
with open(rows_path, encoding="utf-8") as file:
    rows = json.load(file)

db = sqlite3.connect(path, isolation_level=None)
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA synchronous = FULL")
db.execute("PRAGMA foreign_keys = ON")
for sql in rows["schema"]:
    db.execute(sql)


class Created(BaseModel):
    """What a call answers."""

    id: str
    title: str


server = FastMCP("bench-fastmcp")


# Not a plain function: that would cost a thread for each call.
@server.tool
async def task_create(
    title: str,
    spec_markdown: str,
    workspace: str,
    initial_phase: str,
    labels: list[str],
    actor: str,
    actor_role: str,
) -> Created:
    """Create a task."""
    task = f"task_{uuid.uuid4()}"
    db.execute("BEGIN IMMEDIATE")
    for insert in rows["inserts"]:
        values = list(insert["values"])
        for at in insert["ids"]:
            values[at] = task
        db.execute(insert["sql"], values)
    db.execute("COMMIT")
    return Created(id=task, title=title)


server.run(transport="stdio", show_banner=False)
