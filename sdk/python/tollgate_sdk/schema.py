"""JSON Schemas of annotations, and values that fit them."""

from __future__ import annotations

import dataclasses
import enum
import re
import types
import typing
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union


@dataclass(frozen=True)
class Length:
    """Length of a text in characters, or of a list in entries."""

    min: int | None = None
    max: int | None = None


@dataclass(frozen=True)
class Range:
    """Smallest and largest number."""

    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class Pattern:
    """Regular expression that a text matches somewhere, as in JSON Schema."""

    expression: str


class Examples:
    """Examples of values, which agents read and `tollgate packs check` uses."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)


@dataclass(frozen=True)
class Extend:
    """Further keys of the schema, for example `x-values`."""

    keys: dict[str, Any]


@dataclass(frozen=True)
class Mistake:
    """A value that does not fit, and its place."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or 'the value'}: {self.message}"


class Mistakes(Exception):
    """Everything that is wrong with a value."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("; ".join(str(mistake) for mistake in mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True)
class Field:
    """A named value of an object."""

    name: str
    annotation: Any
    has_no_default: bool
    default: Any = None

    @property
    def is_required(self) -> bool:
        """True if the member is always there. One that is `None` is left out."""
        return self.has_no_default and not _may_be_none(self.annotation)


_WORDS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def fields_of(cls: type) -> list[Field]:
    """The fields of a dataclass."""
    hints = typing.get_type_hints(cls, include_extras=True)
    found = []
    for field in dataclasses.fields(cls):
        has_value = field.default is not dataclasses.MISSING
        has_factory = field.default_factory is not dataclasses.MISSING
        default = field.default if has_value else None
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        found.append(Field(field.name, hints[field.name], not (has_value or has_factory), default))
    return found


def object_schema(fields: list[Field], description: str, closed: bool) -> dict[str, Any]:
    """Schema of an object. A closed one takes no other members."""
    properties = {}
    for field in fields:
        made = schema(field.annotation, closed)
        if not field.is_required and field.default is not None:
            made["default"] = encode(field.default)
        properties[field.name] = made
    whole: dict[str, Any] = {"type": "object"}
    if description:
        whole["description"] = description
    whole["properties"] = properties
    required = [field.name for field in fields if field.is_required]
    if required:
        whole["required"] = required
    if closed:
        whole["additionalProperties"] = False
    return whole


def schema(annotation: Any, closed: bool) -> dict[str, Any]:
    """Schema of an annotation. Each property has one type, because many clients take no other schemas."""
    plain, notes = _apart(annotation)
    made = _plain_schema(plain, closed)
    for note in notes:
        made |= _note(note, made.get("type"))
    return made


def _apart(annotation: Any) -> tuple[Any, list[Any]]:
    """An annotation without its notes and without `None`."""
    notes: list[Any] = []
    while True:
        origin = typing.get_origin(annotation)
        if origin is Annotated:
            annotation, *more = typing.get_args(annotation)
            notes = more + notes
        elif origin in (Union, types.UnionType):
            kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
            if len(kinds) != 1:
                raise TypeError(f"{annotation} has several types, which many clients do not support; use one")
            annotation = kinds[0]
        else:
            return annotation, notes


def _may_be_none(annotation: Any) -> bool:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _may_be_none(arguments[0])
    return origin in (Union, types.UnionType) and type(None) in arguments


def _plain_schema(plain: Any, closed: bool) -> dict[str, Any]:
    origin, arguments = typing.get_origin(plain), typing.get_args(plain)
    if plain in _WORDS:
        return {"type": _WORDS[plain]}
    if origin is Literal:
        return {"type": _WORDS[type(arguments[0])], "enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": schema(arguments[0], closed)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema(arguments[1], closed)}
    if plain is dict or plain is Any:
        return {"type": "object"}
    if isinstance(plain, type) and issubclass(plain, enum.Enum):
        values = [member.value for member in plain]
        return {"type": _WORDS[type(values[0])], "enum": values}
    if dataclasses.is_dataclass(plain) and isinstance(plain, type):
        return object_schema(fields_of(plain), document(plain), closed)
    raise TypeError(
        f"{plain!r} cannot be a parameter or a result; use str, int, float, bool, list, dict, Literal, an Enum or a dataclass"
    )


def _note(note: Any, kind: str | None) -> dict[str, Any]:
    if isinstance(note, str):
        return {"description": note}
    if isinstance(note, Length):
        low, high = ("minItems", "maxItems") if kind == "array" else ("minLength", "maxLength")
        return _bounds(low, note.min, high, note.max)
    if isinstance(note, Range):
        return _bounds("minimum", note.min, "maximum", note.max)
    if isinstance(note, Pattern):
        return {"pattern": note.expression}
    if isinstance(note, Examples):
        return {"examples": note.values}
    if isinstance(note, Extend):
        return dict(note.keys)
    raise TypeError(f"{note!r} in Annotated is not a description, Length, Range, Pattern, Examples or Extend")


def _bounds(low: str, least: float | None, high: str, most: float | None) -> dict[str, Any]:
    return {key: bound for key, bound in ((low, least), (high, most)) if bound is not None}


def document(thing: Any) -> str:
    """The docstring as running text. A dataclass without one has its signature there, which says nothing."""
    text = (getattr(thing, "__doc__", None) or "").strip()
    if isinstance(thing, type) and text.startswith(f"{thing.__name__}("):
        return ""
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def decode_object(fields: list[Field], value: Any) -> dict[str, Any]:
    """The values of an object's fields. Raises all mistakes at once."""
    mistakes: list[Mistake] = []
    made = _object(fields, value, "", mistakes)
    if mistakes:
        raise Mistakes(mistakes)
    return made


def _object(fields: list[Field], value: Any, path: str, mistakes: list[Mistake]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if not isinstance(value, dict):
        mistakes.append(Mistake(path, "is not an object"))
        return made
    known = {field.name: field for field in fields}
    for name in value.keys() - known.keys():
        mistakes.append(Mistake(_below(path, name), "is not known"))
    for name, field in known.items():
        if name in value:
            made[name] = _value(field.annotation, value[name], _below(path, name), mistakes)
        elif field.is_required:
            mistakes.append(Mistake(_below(path, name), "is missing"))
        else:
            made[name] = field.default
    return made


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _value(annotation: Any, value: Any, path: str, mistakes: list[Mistake]) -> Any:
    plain, notes = _apart(annotation)
    before = len(mistakes)
    made = _plain_value(plain, value, path, mistakes)
    if len(mistakes) == before:
        mistakes.extend(Mistake(path, why) for note in notes for why in _faults(note, value))
    return made


def _plain_value(plain: Any, value: Any, path: str, mistakes: list[Mistake]) -> Any:
    origin, arguments = typing.get_origin(plain), typing.get_args(plain)
    if origin is list and isinstance(value, list):
        return [_value(arguments[0], item, f"{path}[{nth}]", mistakes) for nth, item in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {key: _value(arguments[1], item, _below(path, key), mistakes) for key, item in value.items()}
    if dataclasses.is_dataclass(plain) and isinstance(plain, type):
        before = len(mistakes)
        members = _object(fields_of(plain), value, path, mistakes)
        return plain(**members) if len(mistakes) == before else None
    if isinstance(plain, type) and issubclass(plain, enum.Enum):
        values = [member.value for member in plain]
        if value in values:
            return plain(value)
        mistakes.append(Mistake(path, f"is not one of {', '.join(map(str, values))}"))
        return None
    if not _fits(plain, origin, arguments, value):
        mistakes.append(Mistake(path, f"is not {_told(_plain_schema(plain, True))}"))
    return float(value) if plain is float and isinstance(value, int) else value


def _fits(plain: Any, origin: Any, arguments: tuple[Any, ...], value: Any) -> bool:
    if origin is Literal:
        return any(value == word and type(value) is type(word) for word in arguments)
    if plain is bool or isinstance(value, bool):
        return plain is bool and isinstance(value, bool)
    if plain is float:
        return isinstance(value, (int, float))
    if plain is dict or plain is Any:
        return isinstance(value, dict)
    return plain in (str, int) and isinstance(value, plain)


def _told(made: dict[str, Any]) -> str:
    if "enum" in made:
        return f"one of {', '.join(map(str, made['enum']))}"
    word = made["type"]
    return f"{'an' if word[0] in 'aeio' else 'a'} {word}"


def _faults(note: Any, value: Any) -> list[str]:
    if isinstance(note, (Length, Range)):
        size = len(value) if isinstance(note, Length) else value
        what = "its length" if isinstance(note, Length) else "it"
        if note.min is not None and size < note.min:
            return [f"{what} is {size}, less than {note.min}"]
        if note.max is not None and size > note.max:
            return [f"{what} is {size}, more than {note.max}"]
    if isinstance(note, Pattern) and not re.search(note.expression, value):
        return [f"does not match {note.expression}"]
    return []


def encode(value: Any) -> Any:
    """A value as JSON. Members that are `None` are left out, as schemas have one type a property."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: encode(member) for name, member in members if member is not None}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {key: encode(member) for key, member in value.items() if member is not None}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value
