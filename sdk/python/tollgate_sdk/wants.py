"""Requests of a component beside its own storage. The operator grants each one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["workspace-read", "workspace-write", "process", "tests", "git", "ledger-query", "budget", "artifacts", "client"]


@dataclass(frozen=True)
class Want:
    """One request. `value` is a workspace, a path, a program, a budget, `read` or `write` for git, `model` or `roots` for clients."""

    kind: Kind
    value: str = ""


@dataclass(frozen=True)
class Migration:
    """A step of a component's schema. A step that was released never changes."""

    name: str
    sql: str
