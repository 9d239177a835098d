"""The way between the SDK's own types and those of the interfaces in `wit/`.

Inside a component `wit_world` is there. Elsewhere the bindings that were made ahead, in the folder `bindings_ahead`, have
the same types, so that tests go the same way.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import host
from .errors import NextCall, Refusal
from .wants import Migration, Want

if TYPE_CHECKING:
    from .pack import Tool, ToolPack
    from .policy import Policy, Request

notes: list[tuple[str, str]] = []
"""Notes of the policy that evaluates now."""

_KINDS = {
    "workspace-read": "WorkspaceRead",
    "workspace-write": "WorkspaceWrite",
    "process": "Process",
    "tests": "Tests",
    "git": "Git",
    "ledger-query": "LedgerQuery",
    "budget": "Budget",
    "artifacts": "Artifacts",
    "client": "Client",
}


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"wit_world.{name}")
    except ModuleNotFoundError:
        ahead = str(pathlib.Path(__file__).parent / "bindings_ahead")
        if ahead in sys.path:
            raise
        sys.path.append(ahead)
        return importlib.import_module(f"wit_world.{name}")


def _is_component() -> bool:
    return sys.platform == "wasi"


class WitHost:
    """The host behind the interfaces that a component imports."""

    def __init__(self, kind: str) -> None:
        self.storage = _module("imports.storage")
        self.clock = _module("imports.clock_and_ids")
        self.logs = _module("imports.log")
        self.memory: Any = _module("imports.memory") if kind == "policy" else None
        self.judged: Any = _module("imports.judged_call") if kind == "policy" else None

    def query(self, sql: str, params: tuple[host.Sql, ...]) -> list[host.Row]:
        return _Statements(self.storage, self.storage).query(sql, params)

    def execute(self, sql: str, params: tuple[host.Sql, ...]) -> int:
        return _Statements(self.storage, self.storage).execute(sql, params)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[host.Statements]:
        with self.storage.Transaction.begin() as transaction:
            yield _Statements(self.storage, transaction)
            with _db_errors():
                self.storage.Transaction.commit(transaction)

    def now_ms(self) -> int:
        return int(self.clock.now())

    def new_id(self, prefix: str) -> str:
        return str(self.clock.new_id(prefix))

    def log(self, level: host.Level, message: str) -> None:
        self.logs.write(self.logs.Level[level.upper()], message)

    def progress(self, done: int, total: int | None, message: str) -> None:
        self.logs.progress(done, total, message)

    def remembered(self, key: str) -> host.Entry | None:
        entry = _memory(lambda: self.memory.get(key))
        return entry and _entry(entry)

    def memory_list(self, prefix: str, after: str | None, limit: int) -> list[host.Entry]:
        return [_entry(entry) for entry in _memory(lambda: self.memory.list(prefix, after, limit))]

    def put(self, key: str, text: str, until: int | None) -> None:
        _memory(lambda: self.memory.put(key, text, until))

    def add(self, key: str, amount: int, until: int | None) -> int:
        return int(_memory(lambda: self.memory.add(key, amount, until)))

    def forget(self, key: str) -> None:
        _memory(lambda: self.memory.forget(key))

    def input_schema(self) -> str | None:
        found: str | None = self.judged.input_schema()
        return found

    def bind_question(self, key: str) -> None:
        self.judged.bind_question(key)

    def propose(self, arguments: str) -> None:
        self.judged.propose(arguments)


def _entry(entry: Any) -> host.Entry:
    return host.Entry(entry.key, entry.text, entry.number, entry.until)


def _is_err(err: Exception) -> bool:
    return type(err).__name__ == "Err"


def _memory(ask: Any) -> Any:
    try:
        return ask()
    except Exception as err:
        if not _is_err(err):
            raise
        told = err.value  # type: ignore[attr-defined]
        raise host.MemoryFailure(f"{type(told).__name__.removeprefix('Error_')} {getattr(told, 'value', '')}") from err


@contextlib.contextmanager
def _db_errors() -> Iterator[None]:
    try:
        yield
    except Exception as err:
        if not _is_err(err):
            raise
        told = err.value  # type: ignore[attr-defined]
        kind = type(told).__name__.removeprefix("Error_")
        raise host.DbError(kind, str(getattr(told, "value", ""))) from err


class _Statements:
    def __init__(self, storage: Any, runner: Any) -> None:
        self.storage, self.runner = storage, runner

    def query(self, sql: str, params: tuple[host.Sql, ...]) -> list[host.Row]:
        with _db_errors():
            rows = self.runner.query(sql, [self._to_wit(value) for value in params])
        return [tuple(getattr(value, "value", None) for value in row) for row in rows]

    def execute(self, sql: str, params: tuple[host.Sql, ...]) -> int:
        with _db_errors():
            return int(self.runner.execute(sql, [self._to_wit(value) for value in params]))

    def _to_wit(self, value: host.Sql) -> Any:
        match value:
            case None:
                return self.storage.Value_Null()
            case bool() | int():
                return self.storage.Value_Integer(int(value))
            case float():
                return self.storage.Value_Real(value)
            case str():
                return self.storage.Value_Text(value)
            case bytes():
                return self.storage.Value_Blob(value)
        raise TypeError(f"{value!r} cannot be stored; use None, int, float, str or bytes")


def _next_call(call: NextCall | None) -> Any:
    if call is None:
        return None
    return _module("imports.component").NextCall(call.tool, json.dumps(call.arguments))


def _want(want: Want) -> Any:
    component = _module("imports.component")
    made = getattr(component, f"Want_{_KINDS[want.kind]}")
    if want.kind == "git":
        return made(component.GitAccess[want.value.upper()])
    if want.kind == "client":
        return made(component.ClientPart[want.value.upper()])
    return made(want.value) if want.value else made()


def _migrations(steps: Any) -> list[Any]:
    step_of = _module("imports.component").Migration
    return [step_of(step.name, step.sql) for step in steps]


def _err(value: Any) -> Exception:
    _module("exports")
    made: Exception = importlib.import_module("componentize_py_types").Err(value)
    return made


def _settle(kind: str) -> None:
    """In a component the host is always the same, and its modules are there only while the component is made. In tests,
    the host is the double that calls."""
    for name in ("exports", "imports.component"):
        _module(name)
    if _is_component():
        host.current = WitHost(kind)


def _tool(tool: Tool) -> Any:
    wit = _module("exports.pack")
    return wit.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        effect=_module("imports.component").Effect[tool.effect.upper()],
        tier=wit.Tier[tool.tier.upper()],
        destructive=tool.destructive,
        idempotent=tool.idempotent,
        open_world=tool.open_world,
        members=None,
        input_schema=json.dumps(tool.input_schema),
        output_schema=json.dumps(tool.output_schema),
        aliases=list(tool.aliases),
    )


def _prompt(prompt: Tool) -> Any:
    wit = _module("exports.pack")
    required = set(prompt.input_schema.get("required", []))
    arguments = [
        wit.PromptArgument(name, member.get("description", ""), name in required)
        for name, member in prompt.input_schema["properties"].items()
    ]
    return wit.Prompt(prompt.name, prompt.title, prompt.description, arguments)


def _refusal(refusal: Refusal) -> Any:
    wit = _module("exports.pack")
    blockers = [
        wit.Blocker(blocker.code, blocker.message, blocker.field, _next_call(blocker.next_call))
        for blocker in refusal.blockers
    ]
    return wit.ToolError(
        code=refusal.code,
        message=refusal.message,
        remediation=refusal.remediation,
        blockers=blockers,
        context=json.dumps(refusal.context),
        next_call=_next_call(refusal.next_call),
        keep_rows=refusal.keep_rows,
        asking=None,
    )


def export_pack(pack: ToolPack) -> Any:
    """The class `Pack` of a component."""
    from .pack import Call

    _settle("pack")
    wit, exports = _module("exports.pack"), _module("exports")

    class Pack(exports.Pack):  # type: ignore[name-defined,misc]
        def describe(self) -> Any:
            return wit.Manifest(
                name=pack.name,
                version=pack.version,
                summary=pack.summary,
                instructions=pack.instructions,
                wants=[_want(want) for want in pack.wants],
                migrations=_migrations(pack.migrations),
                tools=[_tool(tool) for tool in pack.tools.values()],
                prompts=[_prompt(prompt) for prompt in pack.prompts.values()],
                config_schema=pack.config_schema(),
                render_tool=pack.render_tool,
            )

        def call(self, cx: Any, tool: str, arguments: str) -> Any:
            facts = Call(cx.op_id, cx.envelope_id, cx.identity, cx.client, cx.session_id)
            try:
                made, text = pack.call(tool, json.loads(arguments), facts, json.loads(cx.config or "{}"))
            except Refusal as refusal:
                raise _err(_refusal(refusal)) from refusal
            return wit.Reply(json.dumps(made, ensure_ascii=False), text, [])

    return Pack


def export_policy(policy: type[Policy]) -> Any:
    """The class `Judge` of a component."""
    from .policy import Amend, Ask, BadSettings, CannotJudge, Deny, Outcome, Pass

    _settle("policy")
    wit, exports = _module("exports.judge"), _module("exports")

    def denial(deny: Deny) -> Any:
        return wit.Denial(deny.code, deny.reason, deny.remediation, _next_call(deny.next_call))

    def verdict(said: Any) -> Any:
        match said:
            case Pass():
                return wit.Verdict_Pass()
            case Amend():
                return wit.Verdict_Amend(json.dumps(said.arguments, ensure_ascii=False))
            case Deny():
                return wit.Verdict_Deny(denial(said))
            case Ask():
                if said.key is not None:
                    host.current.bind_question(said.key)
                if said.arguments is not None:
                    host.current.propose(json.dumps(said.arguments, ensure_ascii=False))
                return wit.Verdict_Ask(wit.Question(said.message, denial(said.otherwise)))
        raise CannotJudge(f"{said!r} is not a verdict; return Pass, Amend, Deny or Ask")

    def review(said: Any) -> Any:
        match said:
            case Pass():
                return wit.Review_Pass()
            case Deny():
                return wit.Review_Deny(denial(said))
        raise CannotJudge(f"{said!r} is not a verdict on a result; return Pass or Deny")

    def judged(request: Any, judge: Any, told: Any) -> Any:
        notes.clear()
        try:
            settings = json.loads(request.settings or "{}")
            said = told(judge(policy.configured(settings), _request(request)))
        except (BadSettings, CannotJudge, host.DbError, host.MemoryFailure) as err:
            raise _err(str(err)) from err
        return said, [wit.Note(key, value) for key, value in notes]

    class Judge(exports.Judge):  # type: ignore[name-defined,misc]
        def describe(self) -> Any:
            return wit.Manifest(
                name=policy.policy_name,
                version=policy.version,
                summary=policy.summary,
                phase=wit.Phase[policy.phase.upper()],
                wants=[_want(want) for want in policy.wants],
                migrations=_migrations(policy.migrations),
                config_schema=json.dumps(policy.config_schema()),
            )

        def configure(self, settings: str) -> None:
            try:
                policy.configured(json.loads(settings or "{}"))
            except BadSettings as wrong:
                raise _err([wit.Problem(problem.key, problem.message) for problem in wrong.problems]) from wrong

        def before_call(self, request: Any) -> Any:
            return judged(request, lambda configured, call: configured.before(call), verdict)

        def after_call(self, request: Any, outcome: Any) -> Any:
            body = json.loads(outcome.body) if outcome.body else None
            seen = Outcome(outcome.success, body, outcome.error_code, outcome.text, outcome.duration_ms)
            return judged(request, lambda configured, call: configured.after(call, seen), review)

    return Judge


def _request(request: Any) -> Request:
    from .policy import Request

    return Request(
        tool=request.tool,
        arguments=json.loads(request.arguments),
        effect=request.effect.name.lower(),
        pack=request.pack,
        op_id=request.op_id,
        args_hash=request.args_hash,
        envelope_id=request.envelope_id,
        identity=request.identity,
        client=request.client,
        connection=request.connection,
        at=request.at,
        notes={note.key: note.value for note in request.notes},
    )


def migrations(*steps: tuple[str, str]) -> tuple[Migration, ...]:
    """Steps of a schema, each a name and its SQL."""
    return tuple(Migration(name, sql) for name, sql in steps)
