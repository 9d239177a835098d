"""Packs: tools and prompts made of annotated functions."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from . import bindings, surface
from .errors import Refusal
from .host import DbError
from .schema import Field, Mistakes, decode_object, document, encode, object_schema, schema
from .wants import Migration, Want

Effect = Literal["read", "write", "run"]
Tier = Literal["core", "standard", "full"]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Call:
    """Facts about a call besides its arguments. A parameter with this annotation gets them."""

    op_id: str = ""
    envelope_id: str | None = None
    identity: str | None = None
    client: str | None = None
    session_id: str = ""
    settings: Any = None


@dataclass(frozen=True)
class Tool:
    """A function with what clients are told about it."""

    name: str
    title: str
    description: str
    effect: Effect
    tier: Tier
    destructive: bool
    idempotent: bool
    open_world: bool
    aliases: tuple[str, ...]
    fields: list[Field]
    call_parameter: str | None
    returns: Any
    function: Callable[..., Any]

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        effect: Effect,
        title: str,
        tier: Tier = "core",
        destructive: bool = False,
        idempotent: bool = False,
        open_world: bool = False,
        aliases: Iterable[str] = (),
    ) -> Tool:
        """The tool that an annotated function describes by its name, docstring, parameters and result."""
        fields, call_parameter, returns = _signature(function)
        name = function.__name__
        return cls(
            name=name,
            title=title or name.replace("_", " ").capitalize(),
            description=document(function),
            effect=effect,
            tier=tier,
            destructive=destructive,
            idempotent=idempotent or effect == "read",
            open_world=open_world,
            aliases=tuple(aliases),
            fields=fields,
            call_parameter=call_parameter,
            returns=returns,
            function=function,
        )

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return object_schema(self.fields, self.description, closed=True)

    @property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of the reply."""
        return schema(self.returns, closed=False)

    def run(self, arguments: dict[str, Any], call: Call) -> Any:
        """Calls the function with checked arguments."""
        try:
            made = decode_object(self.fields, arguments)
        except Mistakes as wrong:
            raise Refusal(
                "INVALID_ARGUMENTS", str(wrong), "Correct the arguments and call again."
            ) from wrong
        if self.call_parameter:
            made[self.call_parameter] = call
        return self.function(**made)


@dataclass
class ToolPack:
    """A pack: its name, and the functions that are its tools and prompts."""

    name: str
    summary: str
    version: str = "0.1.0"
    instructions: str = ""
    settings: type | None = None
    """Dataclass of the operator's `config` table."""
    wants: Iterable[Want] = ()
    migrations: Iterable[Migration] = ()
    render_tool: str | None = None
    tools: dict[str, Tool] = field(default_factory=dict, init=False)
    prompts: dict[str, Tool] = field(default_factory=dict, init=False)

    def tool(
        self,
        effect: Effect,
        *,
        title: str = "",
        tier: Tier = "core",
        destructive: bool = False,
        idempotent: bool = False,
        open_world: bool = False,
        aliases: Iterable[str] = (),
    ) -> Callable[[Function], Function]:
        """Makes a tool of a function: name, docstring, annotated parameters and result."""

        def add(function: Function) -> Function:
            tool = Tool.of(
                function,
                effect=effect,
                title=title,
                tier=tier,
                destructive=destructive,
                idempotent=idempotent,
                open_world=open_world,
                aliases=aliases,
            )
            if not isinstance(tool.returns, type) or tool.output_schema["type"] != "object":
                raise TypeError(f"the tool {tool.name} must return a dataclass, and its annotation says {tool.returns}")
            self.tools[tool.name] = tool
            return function

        return add

    def prompt(self, *, title: str = "") -> Callable[[Function], Function]:
        """Makes a prompt of a function with texts as parameters, which returns the text of the prompt."""

        def add(function: Function) -> Function:
            prompt = Tool.of(function, effect="read", title=title)
            takes_texts = all(schema(field.annotation, True)["type"] == "string" for field in prompt.fields)
            if prompt.returns is not str or not takes_texts:
                raise TypeError(f"the prompt {prompt.name} must take texts and return a text")
            self.prompts[prompt.name] = prompt
            return function

        return add

    def call(self, name: str, arguments: dict[str, Any], facts: Call, config: dict[str, Any]) -> tuple[Any, str | None]:
        """Runs a tool or a prompt. Returns the structured reply, and the text of a prompt."""
        facts = Call(facts.op_id, facts.envelope_id, facts.identity, facts.client, facts.session_id, self._settings(config))
        try:
            if name in self.tools:
                return encode(self.tools[name].run(arguments, facts)), None
            if name in self.prompts:
                return {}, str(self.prompts[name].run(arguments, facts))
        except DbError as failed:
            raise Refusal("STORAGE_FAILED", str(failed), "Report this to the author of the pack.") from failed
        raise Refusal("UNKNOWN_TOOL", f"`{name}` is not a tool of {self.name}", "List the tools.")

    def _settings(self, config: dict[str, Any]) -> Any:
        if self.settings is None:
            return config
        from .schema import fields_of

        try:
            return self.settings(**decode_object(fields_of(self.settings), config))
        except Mistakes as wrong:
            raise Refusal(
                "BAD_SETTINGS", str(wrong), f"Ask the operator to correct [packs.{self.name}.config]."
            ) from wrong

    def faults(self) -> list[str]:
        """Everything that clients refuse or nobody would understand, as in `tollgate packs check`. A test of each pack has none."""
        found = [f"{tool.name}: {fault}" for tool in self.tools.values() for fault in surface.faults(tool)]
        for prompt in self.prompts.values():
            if not prompt.description:
                found.append(f"{prompt.name} has no docstring")
            for named in prompt.fields:
                if "description" not in schema(named.annotation, True):
                    found.append(f"{prompt.name}: the parameter {named.name} has no description")
        return found

    def export(self) -> Any:
        """The class that a component exports: `Pack = pack.export()` in the module of the component."""
        return bindings.export_pack(self)

    def config_schema(self) -> str | None:
        """JSON Schema of the settings."""
        return None if self.settings is None else json.dumps(schema(self.settings, closed=True))


def _signature(function: Callable[..., Any]) -> tuple[list[Field], str | None, Any]:
    hints = typing.get_type_hints(function, include_extras=True)
    fields, call_parameter = [], None
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in hints:
            raise TypeError(f"the parameter {name} of {function.__name__} has no annotation")
        if hints[name] is Call:
            call_parameter = name
            continue
        has_no_default = parameter.default is inspect.Parameter.empty
        fields.append(Field(name, hints[name], has_no_default, None if has_no_default else parameter.default))
    return fields, call_parameter, hints.get("return")
