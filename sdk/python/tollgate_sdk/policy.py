"""Policies: a class with settings, and `before` and `after`, which evaluate calls."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, dataclass_transform

from . import bindings, host
from .errors import NextCall
from .schema import Mistake, Mistakes, decode_object, document, fields_of, object_schema
from .wants import Migration, Want

Phase = Literal["request", "response", "both"]
Effect = Literal["read", "write", "run"]


@dataclass(frozen=True)
class Request:
    """A call to evaluate."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    effect: Effect = "write"
    pack: str = "test"
    op_id: str = "op_test"
    args_hash: str = ""
    envelope_id: str | None = None
    identity: str | None = None
    client: str | None = None
    connection: str = "test"
    at: int = 1_767_225_600_000
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def actor(self) -> str | None:
        """The proven identity, else the claim in the argument `actor` or `actor_name`, which any caller can set.

        A claim in the form of an identity, such as `token:ada`, is ignored, because the transport would have proved it.
        """
        claimed = self._claimed()
        return self.identity or (None if claimed is None or _is_like_identity(claimed) else claimed)

    @property
    def recorded_actor(self) -> str | None:
        """The actor as the ledger records it: the proven identity, or `claimed:` and the name in the arguments."""
        claimed = self._claimed()
        return self.identity or (None if claimed is None else f"claimed:{claimed}")

    def _claimed(self) -> str | None:
        names = (self.arguments.get(key) for key in ("actor", "actor_name"))
        return next((name for name in names if isinstance(name, str) and name.strip()), None)


def _is_like_identity(name: str) -> bool:
    """True for the form of an identity: `token:NAME`, or an issuer's URL, `#` and the subject."""
    name = name.strip()
    return name.startswith("token:") or ("#" in name and ":" in name)


@dataclass(frozen=True)
class Outcome:
    """Outcome of an evaluated call."""

    success: bool = True
    body: Any = None
    error_code: str | None = None
    text: str | None = None
    duration_ms: int = 0


@dataclass(frozen=True)
class Pass:
    """The call runs, or its result leaves."""


@dataclass(frozen=True)
class Amend:
    """The call runs with other arguments, which are checked again."""

    arguments: dict[str, Any]


@dataclass(frozen=True)
class Deny:
    """The call does not run, or its result does not leave."""

    code: str
    reason: str
    remediation: str = ""
    next_call: NextCall | None = None


@dataclass(frozen=True)
class Ask:
    """The client's user is asked, and without a yes the call is denied.

    `key` binds the answer to a key instead of the message. `arguments` are those with which the call runs after a yes.
    """

    message: str
    otherwise: Deny
    key: str | None = None
    arguments: dict[str, Any] | None = None


Verdict = Pass | Amend | Deny | Ask
Review = Pass | Deny


class CannotJudge(Exception):
    """The policy has no verdict: the call is denied unless the operator lets the policy fail open."""


@dataclass(frozen=True)
class Problem:
    """A mistake in the settings."""

    key: str
    message: str


class BadSettings(Exception):
    """Everything that is wrong with the settings."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{problem.key}: {problem.message}" for problem in problems))
        self.problems = problems


@dataclass_transform()
class Policy:
    """A policy is its settings: the annotated attributes of a subclass are the keys of its `config` table."""

    policy_name: ClassVar[str]
    summary: ClassVar[str]
    phase: ClassVar[Phase]
    version: ClassVar[str]
    wants: ClassVar[tuple[Want, ...]]
    migrations: ClassVar[tuple[Migration, ...]]

    def __init_subclass__(
        cls,
        *,
        name: str,
        summary: str,
        phase: Phase = "request",
        version: str = "0.1.0",
        wants: Iterable[Want] = (),
        migrations: Iterable[Migration] = (),
    ) -> None:
        cls.policy_name, cls.summary, cls.phase, cls.version = name, summary, phase, version
        cls.wants, cls.migrations = tuple(wants), tuple(migrations)
        dataclass(cls)

    def problems(self) -> list[Problem]:
        """Mistakes in the settings that their types do not express."""
        return []

    def before(self, request: Request) -> Verdict:
        """Evaluates a call before it runs. Storage is a snapshot."""
        return Pass()

    def after(self, request: Request, outcome: Outcome) -> Review:
        """Evaluates a result before it leaves. After a `write` call, storage commits with the call."""
        return Pass()

    @classmethod
    def config_schema(cls) -> dict[str, Any]:
        """JSON Schema of the settings."""
        return object_schema(fields_of(cls), document(cls), closed=True)

    @classmethod
    def configured(cls, settings: dict[str, Any]) -> Any:
        """The policy with settings. Raises `BadSettings` with everything that is wrong."""
        try:
            policy = cls(**decode_object(fields_of(cls), settings))
        except Mistakes as wrong:
            raise BadSettings([_problem(mistake) for mistake in wrong.mistakes]) from wrong
        problems = policy.problems()
        if problems:
            raise BadSettings(problems)
        return policy

    @classmethod
    def export(cls) -> Any:
        """The class that a component exports: `Judge = Freeze.export()` in the module of the component."""
        return bindings.export_policy(cls)


def _problem(mistake: Mistake) -> Problem:
    return Problem(mistake.path, mistake.message)


def note(key: str, value: str) -> None:
    """Leaves a note for later policies, and for the evaluation of the result."""
    bindings.notes.append((key, value))


def input_schema() -> dict[str, Any] | None:
    """JSON Schema of the arguments that the called tool takes."""
    text = host.current.input_schema()
    return None if text is None else json.loads(text)


def hash_of(arguments: dict[str, Any]) -> str:
    """A hash of arguments for tests: the same arguments have the same."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def with_hash(request: Request) -> Request:
    """The request with the hash of its arguments, if it has none."""
    return request if request.args_hash else dataclasses.replace(request, args_hash=hash_of(request.arguments))
