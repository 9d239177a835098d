"""Doubles of the host: `Session` for packs and `Judge` for policies. SQLite holds the tables, and the clock is fixed.

The host refuses SQL outside of its subset, which `tollgate packs check` shows; here SQLite decides.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from . import bindings, host
from .errors import Refusal
from .pack import ToolPack
from .policy import Amend, Ask, BadSettings, CannotJudge, Deny, Outcome, Pass, Policy, Request, Review, Verdict, with_hash
from .schema import Mistakes, decode_object, fields_of

EPOCH_MS = 1_767_225_600_000
"""Start of the clock: 2026-01-01T00:00:00Z."""
_CHANGES = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_READ})


class Double:
    """A host in memory."""

    def __init__(self, prefix: str, steps: Any) -> None:
        self.prefix = prefix
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.clock_ms = EPOCH_MS
        self.ids = 0
        self.lines: list[str] = []
        self.entries: dict[str, host.Entry] = {}
        self.tool_schema: dict[str, Any] | None = None
        self.key: str | None = None
        self.proposed: str | None = None
        self.is_run = False
        self._is_open = False
        self._steps = list(steps)
        self._applied = 0
        self.migrate(len(self._steps))

    def migrate(self, to: int) -> None:
        """Applies migrations up to a number of them."""
        for step in self._steps[self._applied : to]:
            self.connection.executescript(step.sql)
            self._applied += 1

    @contextlib.contextmanager
    def call(self, effect: str, writes: bool) -> Iterator[None]:
        """Storage as a call of an effect has it. An exception rolls back what it wrote."""
        self.clock_ms += 1000
        self.is_run = effect == "run"
        self.connection.set_authorizer(self._authorize)
        self._pragma("OFF" if writes else "ON")
        self.connection.execute("SAVEPOINT call")
        kept = False
        try:
            with host.using(self):
                yield
            kept = True
        except Refusal as refusal:
            kept = refusal.keep_rows
            raise
        finally:
            if not kept:
                self.connection.execute("ROLLBACK TO call")
            self.connection.execute("RELEASE call")
            self.connection.set_authorizer(None)
            self._pragma("OFF")

    def _pragma(self, value: str) -> None:
        self.connection.set_authorizer(None)
        self.connection.execute(f"PRAGMA query_only = {value}")
        self.connection.set_authorizer(self._authorize)

    def _authorize(self, action: int, first: str | None, *_: Any) -> int:
        foreign = action in _CHANGES and first and not first.startswith((self.prefix, "sqlite_"))
        return sqlite3.SQLITE_DENY if foreign else sqlite3.SQLITE_OK

    def _run(self, sql: str, params: tuple[host.Sql, ...]) -> sqlite3.Cursor:
        if self.is_run and not self._is_open:
            raise host.DbError("TransactionState", "a `run` tool reaches storage in `with db.transaction()`")
        try:
            return self.connection.execute(sql, params)
        except sqlite3.IntegrityError as err:
            raise host.DbError("Constraint", str(err)) from err
        except sqlite3.Error as err:
            if "readonly" in str(err):
                raise host.DbError("ReadOnly") from err
            raise host.DbError("Refused", str(err)) from err

    def query(self, sql: str, params: tuple[host.Sql, ...]) -> list[host.Row]:
        return self._run(sql, params).fetchall()

    def execute(self, sql: str, params: tuple[host.Sql, ...]) -> int:
        return max(self._run(sql, params).rowcount, 0)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[host.Statements]:
        if not self.is_run or self._is_open:
            raise host.DbError("TransactionState", "only a `run` tool begins a transaction, and one at a time")
        self._is_open = True
        self.connection.execute("SAVEPOINT transaction_of_run")
        try:
            yield self
        except BaseException:
            self.connection.execute("ROLLBACK TO transaction_of_run")
            raise
        finally:
            self.connection.execute("RELEASE transaction_of_run")
            self._is_open = False

    def now_ms(self) -> int:
        return self.clock_ms

    def new_id(self, prefix: str) -> str:
        self.ids += 1
        return f"{prefix}_{self.ids:026d}"

    def log(self, level: host.Level, message: str) -> None:
        self.lines.append(f"{level} {message}")

    def progress(self, done: int, total: int | None, message: str) -> None:
        self.lines.append(f"progress {done}/{total} {message}")

    def remembered(self, key: str) -> host.Entry | None:
        entry = self.entries.get(key)
        is_over = entry is not None and entry.until is not None and entry.until <= self.clock_ms
        return None if is_over else entry

    def memory_list(self, prefix: str, after: str | None, limit: int) -> list[host.Entry]:
        keys = sorted(key for key in self.entries if key.startswith(prefix) and (after is None or key > after))
        found = [self.remembered(key) for key in keys]
        return [entry for entry in found if entry is not None][:limit]

    def put(self, key: str, text: str, until: int | None) -> None:
        before = self.remembered(key)
        self.entries[key] = host.Entry(key, text, before.number if before else 0, until)

    def add(self, key: str, amount: int, until: int | None) -> int:
        before = self.remembered(key)
        number = (before.number if before else 0) + amount
        self.entries[key] = host.Entry(key, before.text if before else None, number, before.until if before else until)
        return number

    def forget(self, key: str) -> None:
        self.entries.pop(key, None)

    def input_schema(self) -> str | None:
        return None if self.tool_schema is None else json.dumps(self.tool_schema)

    def bind_question(self, key: str) -> None:
        self.key = key

    def propose(self, arguments: str) -> None:
        self.proposed = arguments


def _prefix(name: str) -> str:
    return name.replace("-", "_") + "_"


class BadReply(Exception):
    """A tool's reply does not match its output schema."""


class Session:
    """A pack over an empty database. Calls go the way of a component's."""

    def __init__(self, pack: ToolPack, settings: dict[str, Any] | None = None, migrations: int | None = None) -> None:
        steps = list(pack.migrations)
        self.pack = pack
        self.settings = settings or {}
        self.identity: str | None = None
        self.client: str | None = None
        self.envelope_id: str | None = None
        self.host = Double(_prefix(pack.name), steps[: len(steps) if migrations is None else migrations])
        self._exported = pack.export()()

    def migrate(self) -> None:
        """Applies the migrations that the session was opened without."""
        self.host._steps = list(self.pack.migrations)
        self.host.migrate(len(self.host._steps))

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Runs a tool, and returns its reply. Raises `Refusal`, and `BadReply` if the reply does not match the output schema."""
        reply: dict[str, Any] = json.loads(self._reply(tool, arguments).structured)
        return reply

    def prompt(self, name: str, **arguments: Any) -> str:
        """Text of a prompt."""
        return self._reply(name, arguments).text or ""

    def _reply(self, tool: str, arguments: dict[str, Any]) -> Any:
        known = self.pack.tools.get(tool) or self.pack.prompts.get(tool)
        effect = known.effect if known else "read"
        facts = SimpleNamespace(
            op_id="op_test",
            envelope_id=self.envelope_id,
            identity=self.identity,
            client=self.client,
            session_id="00000000-0000-7000-8000-000000000000",
            config=json.dumps(self.settings),
        )
        with self.host.call(effect, effect != "read"):
            try:
                reply = self._exported.call(facts, tool, json.dumps(arguments))
            except Exception as err:
                if isinstance(err.__cause__, Refusal):
                    raise err.__cause__ from None
                raise
            self._check(tool, json.loads(reply.structured))
            return reply

    def _check(self, name: str, reply: Any) -> None:
        """Raises `BadReply` if a reply does not fit the tool's annotation, as the host refuses it. Its rows are rolled back."""
        tool = self.pack.tools.get(name)
        if tool is None:
            return
        try:
            decode_object(fields_of(tool.returns), reply)
        except Mistakes as wrong:
            raise BadReply(f"the reply of {name} does not match its output schema: {wrong}") from None

    def sql(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Runs SQL outside of any tool, to look at tables or to fill them."""
        self.host.connection.set_authorizer(None)
        return self.host.connection.execute(sql, params).fetchall()


@dataclass(frozen=True)
class Judged:
    """A verdict, and the notes beside it."""

    verdict: Verdict | Review
    notes: dict[str, str]

    @property
    def is_denied(self) -> bool:
        """True for a denial."""
        return isinstance(self.verdict, Deny)


class Judge:
    """A policy with settings. Raises `BadSettings` if these are wrong."""

    def __init__(self, policy: type[Policy], **settings: Any) -> None:
        self.policy = policy
        self.settings = settings
        self.host = Double(f"policy_{_prefix(policy.policy_name)}", policy.migrations)
        self._exported = policy.export()()
        policy.configured(settings)

    def before(self, request: Request) -> Judged:
        """Evaluates a call. Raises `CannotJudge`."""
        said, notes = self._judged("read", lambda asked: self._exported.before_call(asked), request)
        return Judged(self._verdict(said), notes)

    def after(self, request: Request, outcome: Outcome) -> Judged:
        """Evaluates a result. Raises `CannotJudge`."""
        seen = SimpleNamespace(
            success=outcome.success,
            body=json.dumps(outcome.body),
            error_code=outcome.error_code,
            text=outcome.text,
            duration_ms=outcome.duration_ms,
        )
        said, notes = self._judged(request.effect, lambda asked: self._exported.after_call(asked, seen), request)
        return Judged(self._verdict(said), notes)

    def _judged(self, effect: str, judge: Any, request: Request) -> tuple[Any, dict[str, str]]:
        request = with_hash(request)
        component = bindings._module("imports.component")
        asked = SimpleNamespace(
            **{name: getattr(request, name) for name in request.__dataclass_fields__ if name not in ("arguments", "effect")}
        )
        asked.arguments = json.dumps(request.arguments)
        asked.effect = component.Effect[request.effect.upper()]
        asked.notes = [SimpleNamespace(key=key, value=value) for key, value in request.notes.items()]
        asked.settings = json.dumps(self.settings)
        self.host.key = self.host.proposed = None
        before = dict(self.host.entries)
        try:
            # Storage commits with a `write` call only.
            with self.host.call("read", effect == "write"):
                said, notes = judge(asked)
        except Exception as err:
            # A failed evaluation remembers nothing.
            self.host.entries = before
            if type(err).__name__ == "Err":
                raise CannotJudge(str(err.value)) from err.__cause__  # type: ignore[attr-defined]
            raise
        return said, {note.key: note.value for note in notes}

    def _verdict(self, said: Any) -> Verdict:
        def deny(denial: Any) -> Deny:
            return Deny(denial.code, denial.reason, denial.remediation)

        match type(said).__name__:
            case "Verdict_Deny" | "Review_Deny":
                return deny(said.value)
            case "Verdict_Amend":
                return Amend(json.loads(said.value))
            case "Verdict_Ask":
                proposed = self.host.proposed and json.loads(self.host.proposed)
                return Ask(said.value.message, deny(said.value.otherwise), self.host.key, proposed or None)
        return Pass()


__all__ = ["EPOCH_MS", "BadReply", "BadSettings", "Double", "Judge", "Judged", "Session"]
