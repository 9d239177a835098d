"""Rules for what clients list of a tool, as `tollgate packs check` has them."""

from __future__ import annotations

import json
import re
from typing import Any

_LONGEST_NAME = 40
_LONGEST_ALIAS = 64
_LONGEST_DESCRIPTION = 1 << 10
_LARGEST_SCHEMA = 16 << 10
_SHORTEST_PARAMETER = 25


def faults(tool: Any) -> list[str]:
    """Everything about a tool that some client refuses, or that nobody would understand."""
    found = []
    for name, longest in ((tool.name, _LONGEST_NAME), *((alias, _LONGEST_ALIAS) for alias in tool.aliases)):
        if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{longest - 1}}}", name):
            found.append(f"the name {name!r} does not match ^[a-z][a-z0-9_]{{0,{longest - 1}}}$")
    if len(tool.title.encode()) > _LONGEST_NAME:
        found.append(f"the title {tool.title!r} is longer than {_LONGEST_NAME} bytes")
    length = len(tool.description.encode())
    if length == 0:
        found.append("the tool has no description: write a docstring")
    if length > _LONGEST_DESCRIPTION:
        found.append(f"the description has {length} bytes, more than {_LONGEST_DESCRIPTION}")
    if tool.effect == "read" and tool.destructive:
        found.append("the tool has the effect read and is marked as destructive")
    for side, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        size = len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode())
        if size > _LARGEST_SCHEMA:
            found.append(f"the {side} schema has {size} bytes, more than {_LARGEST_SCHEMA}")
        found.extend(_of_schema(schema, side))
    return found


def _of_schema(schema: dict[str, Any], path: str) -> list[str]:
    if "items" in schema:
        return _of_schema(schema["items"], f"{path}[]")
    found = []
    for name, member in schema.get("properties", {}).items():
        below = f"{path}.{name}"
        text = member.get("description", "")
        if not text:
            found.append(f"{below} has no description")
        elif path.startswith("input") and _is_vague(name, text):
            found.append(f"{below} is described only as {text!r}")
        found.extend(_of_schema(member, below))
    return found


def _is_vague(name: str, description: str) -> bool:
    """True if a description explains nothing beyond the parameter's name."""
    text = description.strip().rstrip(".").lower().removeprefix("the ").replace(" ", "_")
    return len(description) < _SHORTEST_PARAMETER or text == name.lower()
