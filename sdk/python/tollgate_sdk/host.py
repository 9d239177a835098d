"""The host that a component runs in: storage, time, ids, log, memory. Tests put a double in its place."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Sql = None | int | float | str | bytes
Row = tuple[Any, ...]
Level = Literal["debug", "info", "warn", "error"]


class DbError(Exception):
    """A statement that failed. Its effects are rolled back."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.detail = detail


class MemoryFailure(Exception):
    """Something that cannot be remembered."""


@dataclass(frozen=True)
class Entry:
    """An entry of a policy's memory."""

    key: str
    text: str | None
    number: int
    until: int | None


class Statements(Protocol):
    """Something that runs statements: the call's own storage, or a transaction of a `run` tool."""

    def query(self, sql: str, params: tuple[Sql, ...]) -> list[Row]: ...
    def execute(self, sql: str, params: tuple[Sql, ...]) -> int: ...


class Host(Statements, Protocol):
    """Everything that the SDK asks of a host."""

    def transaction(self) -> contextlib.AbstractContextManager[Statements]: ...
    def now_ms(self) -> int: ...
    def new_id(self, prefix: str) -> str: ...
    def log(self, level: Level, message: str) -> None: ...
    def progress(self, done: int, total: int | None, message: str) -> None: ...
    def remembered(self, key: str) -> Entry | None: ...
    def memory_list(self, prefix: str, after: str | None, limit: int) -> list[Entry]: ...
    def put(self, key: str, text: str, until: int | None) -> None: ...
    def add(self, key: str, amount: int, until: int | None) -> int: ...
    def forget(self, key: str) -> None: ...
    def input_schema(self) -> str | None: ...
    def bind_question(self, key: str) -> None: ...
    def propose(self, arguments: str) -> None: ...


class _Nowhere:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} needs a host; in tests, call through tollgate_sdk.testing.Session or Judge")


current: Host = _Nowhere()


@contextlib.contextmanager
def using(host: Host) -> Iterator[None]:
    """Has the SDK use a host for a while."""
    global current
    before, current = current, host
    try:
        yield
    finally:
        current = before


class Db:
    """SQL over the component's own tables, whose names start with its name. Parameters are `?1`, `?2` and so on."""

    def __init__(self, statements: Statements | None = None) -> None:
        self._statements = statements

    def query(self, sql: str, *params: Sql) -> list[Row]:
        """Rows of a statement."""
        return (self._statements or current).query(sql, params)

    def one(self, sql: str, *params: Sql) -> Row | None:
        """The first row, if there is one."""
        rows = self.query(sql, *params)
        return rows[0] if rows else None

    def execute(self, sql: str, *params: Sql) -> int:
        """Runs a statement, and returns the number of changed rows."""
        return (self._statements or current).execute(sql, params)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Db]:
        """A transaction in a `run` tool. An exception rolls it back."""
        with current.transaction() as statements:
            yield Db(statements)


class Memory:
    """Memory of a policy over all calls that it evaluates. What is remembered commits with the evaluated call's row."""

    def get(self, key: str) -> Entry | None:
        """Entry of a key."""
        return current.remembered(key)

    def list(self, prefix: str = "", after: str | None = None, limit: int = 200) -> list[Entry]:
        """Entries whose keys start with a prefix, sorted by key."""
        return current.memory_list(prefix, after, limit)

    def put(self, key: str, text: str, until: int | None = None) -> None:
        """Keeps a text."""
        current.put(key, text, until)

    def add(self, key: str, amount: int = 1, until: int | None = None) -> int:
        """Adds to a number, and returns the sum."""
        return current.add(key, amount, until)

    def forget(self, key: str) -> None:
        """Removes an entry."""
        current.forget(key)


db = Db()
memory = Memory()


def now_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return current.now_ms()


def now() -> str:
    """The time as RFC 3339, for example 2026-01-01T00:00:00.000Z. Such texts sort by time."""
    time = datetime.datetime.fromtimestamp(now_ms() / 1000, datetime.timezone.utc)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id(prefix: str) -> str:
    """A new id that sorts by time of creation, for example note_01k…"""
    return current.new_id(prefix)


def log(message: str, level: Level = "info") -> None:
    """A line in the operator's log."""
    current.log(level, message)


def progress(done: int, total: int | None = None, message: str = "") -> None:
    """Progress of a `run` tool, for clients that ask for it."""
    current.progress(done, total, message)
