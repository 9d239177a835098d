"""Tools and policies for Tollgate in Python.

A tool is an annotated function of a `ToolPack`, a policy a subclass of `Policy`. `tollgate_sdk.testing` runs both without a
host, and `python -m tollgate_sdk build app` makes a component of the module `app`.
"""

from .bindings import migrations
from .errors import Blocker, NextCall, Refusal
from .host import Db, DbError, Entry, MemoryFailure, db, log, memory, new_id, now, now_ms, progress
from .pack import Call, ToolPack
from .policy import (
    Amend,
    Ask,
    BadSettings,
    CannotJudge,
    Deny,
    Outcome,
    Pass,
    Policy,
    Problem,
    Request,
    Review,
    Verdict,
    input_schema,
    note,
)
from .schema import Examples, Extend, Length, Pattern, Range
from .wants import Migration, Want

__all__ = [
    "Amend",
    "Ask",
    "BadSettings",
    "Blocker",
    "Call",
    "CannotJudge",
    "Db",
    "DbError",
    "Deny",
    "Entry",
    "Examples",
    "Extend",
    "Length",
    "MemoryFailure",
    "Migration",
    "NextCall",
    "Outcome",
    "Pass",
    "Pattern",
    "Policy",
    "Problem",
    "Range",
    "Refusal",
    "Request",
    "Review",
    "ToolPack",
    "Verdict",
    "Want",
    "db",
    "input_schema",
    "log",
    "memory",
    "migrations",
    "new_id",
    "note",
    "now",
    "now_ms",
    "progress",
]
