"""Refusals of tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class NextCall:
    """A call that is ready to run."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Blocker:
    """A reason for a refusal."""

    code: str
    message: str
    field: str | None = None
    next_call: NextCall | None = None


class Refusal(Exception):
    """Ends a call with a stable code, a message and a way out. All rows of the call are rolled back.

    `keep_rows` keeps the rows of a refused `write` call.
    """

    def __init__(
        self,
        code: str,
        message: str,
        remediation: str = "",
        *,
        blockers: list[Blocker] | None = None,
        context: dict[str, Any] | None = None,
        next_call: NextCall | None = None,
        keep_rows: bool = False,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.remediation = remediation
        self.blockers = blockers or []
        self.context = context or {}
        self.next_call = next_call
        self.keep_rows = keep_rows
