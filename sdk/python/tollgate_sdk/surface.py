"""Rules for what clients list of a tool, as `tollgate packs check` has them."""

from __future__ import annotations

import json
import re
from typing import Any

_LONGEST_NAME = 40
_LONGEST_ALIAS = 64
_LONGEST_DESCRIPTION = 1 << 10
_LARGEST_SCHEMA = 16 << 10
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Least that a description says: visible characters, and distinct words beside those of the name and _EMPTY_WORDS.
_OF_TOOL = (25, 1)
_OF_PARAMETER = (25, 2)
_OF_FIELD = (10, 1)
# Words that explain nothing, in any description.
_EMPTY_WORDS = {"a", "an", "the", "this", "is", "its", "of", "s", "value", "given"}
# First words of descriptions that nobody has written yet.
_PLACEHOLDERS = {"todo", "tbd", "fixme"}
# Characters that no reader sees: those that Unicode calls ignorable by default, annotations, and control characters
# except white space.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]"
)
# Keywords for which some client refuses the whole list.
_BANNED = ("$ref", "$schema", "$defs", "oneOf", "anyOf", "allOf", "not")
# Keywords with schemas that clients do not show, so that nobody reads the descriptions in there.
_UNREAD = (
    "definitions",
    "patternProperties",
    "prefixItems",
    "additionalItems",
    "contains",
    "propertyNames",
    "dependencies",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
    "$dynamicRef",
    "$recursiveRef",
    "if",
    "then",
    "else",
)


def faults(tool: Any) -> list[str]:
    """Everything about a tool that some client refuses, or that nobody would understand."""
    found = []
    for name, longest in ((tool.name, _LONGEST_NAME), *((alias, _LONGEST_ALIAS) for alias in tool.aliases)):
        if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{longest - 1}}}", name):
            found.append(f"the name {name!r} does not match ^[a-z][a-z0-9_]{{0,{longest - 1}}}$")
    if len(tool.title.encode()) > _LONGEST_NAME:
        found.append(f"the title {tool.title!r} is longer than {_LONGEST_NAME} bytes")
    length = len(tool.description.encode())
    if not _words(tool.description):
        found.append("the tool has no description: write a docstring")
    elif _is_vague(tool.name, tool.description, *_OF_TOOL):
        found.append(f"the tool has a vague description: {tool.description[:80]!r}")
    if length > _LONGEST_DESCRIPTION:
        found.append(f"the description has {length} bytes; at most {_LONGEST_DESCRIPTION} are allowed")
    if tool.effect == "read" and tool.destructive:
        found.append("the tool has the effect read and is marked as destructive")
    for side, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        size = len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode())
        if size > _LARGEST_SCHEMA:
            found.append(f"the {side} schema has {size} bytes; at most {_LARGEST_SCHEMA} are allowed")
        if side == "input" and schema.get("$schema") == _DIALECT:
            found.append("the input schema uses all of JSON Schema 2020-12, which some clients refuse")
            found.extend(_of_full(schema, side))
        else:
            found.extend(_of_schema(schema, side))
    return found


def _of_schema(schema: dict[str, Any], path: str) -> list[str]:
    found = [f"{path} uses {keyword}" for keyword in _BANNED if keyword in schema]
    found.extend(f"{path} uses {keyword}, which some clients do not read" for keyword in _UNREAD if keyword in schema)
    items = schema.get("items")
    if isinstance(items, dict):
        found.extend(_of_schema(items, f"{path}[]"))
    for name, member in schema.get("properties", {}).items():
        below = f"{path}.{name}"
        if not isinstance(member, dict):
            found.append(f"{below} has no type")
            continue
        found.extend(_of_description(name, member.get("description", ""), below))
        found.extend(_of_schema(member, below))
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        found.extend(_of_schema(others, f"{path}.*"))
    return found


def _of_full(schema: Any, path: str) -> list[str]:
    """Vague descriptions in a schema that uses all of JSON Schema, wherever it describes a property."""
    found: list[str] = []
    if isinstance(schema, list):
        for member in schema:
            found.extend(_of_full(member, path))
    if not isinstance(schema, dict):
        return found
    for keyword, value in schema.items():
        if keyword in ("properties", "patternProperties") and isinstance(value, dict):
            for name, member in value.items():
                below = f"{path}.{name}"
                if isinstance(member, dict) and isinstance(member.get("description"), str):
                    found.extend(_of_description(name, member["description"], below))
                found.extend(_of_full(member, below))
        elif keyword in ("$defs", "definitions", "dependentSchemas") and isinstance(value, dict):
            for member in value.values():
                found.extend(_of_full(member, path))
        elif keyword not in ("const", "default", "enum", "examples"):
            found.extend(_of_full(value, path))
    return found


def _of_description(name: str, text: str, path: str) -> list[str]:
    if not _words(text):
        return [f"{path} has no description"]
    if _is_vague(name, text, *(_OF_PARAMETER if path.startswith("input") else _OF_FIELD)):
        return [f"{path} has a vague description: {text!r}"]
    return []


def _is_vague(name: str, description: str, shortest: int, fewest: int) -> bool:
    """True if a description explains nothing beyond the name, or is a placeholder."""
    said = _words(description)
    # Dots, spaces and other signs in a row count as two characters at most.
    length = len(re.sub(r"([\W_]{2})[\W_]+", r"\1", _visible(description)))
    if length < shortest or said[0].lower() in _PLACEHOLDERS:
        return True
    known = _parts(_words(name))
    known.append("".join(known))
    further: list[str] = []
    for word in _parts(said):
        is_known = any(_is_form(word, other) or _is_form(other, word) for other in (*known, *further))
        if not is_known and word not in _EMPTY_WORDS:
            further.append(word)
    return len(further) < fewest


def _visible(text: str) -> str:
    """Text that readers see, with one space for all white space between two words."""
    return " ".join(_INVISIBLE.sub("", text).split())


def _words(text: str) -> list[str]:
    """Visible words of a text."""
    return re.findall(r"[^\W_]+", _visible(text))


def _parts(words: list[str]) -> list[str]:
    """Lower-case parts of words, which camelCase joins."""
    parts = []
    for word in words:
        start = 0
        for at in range(1, len(word)):
            if word[at - 1].islower() and word[at].isupper():
                parts.append(word[start:at].lower())
                start = at
        parts.append(word[start:].lower())
    return parts


def _is_form(word: str, other: str) -> bool:
    """True if a word is another one or its plural."""
    return word in (other, f"{other}s", f"{other}es") or (other.endswith("y") and word == f"{other[:-1]}ies")
