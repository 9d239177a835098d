"""A pack with two tools: one greets, one says how far it gets outside its sandbox."""

# Modules that are looked up at run time must be there before: a component has no files.
import encodings.idna
import json
import os
import socket

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import pack
from wit_world.imports import component

INPUT = {
    "type": "object",
    "properties": {"name": {"type": "string", "description": "Who to greet."}},
    "required": ["name"],
    "additionalProperties": False,
}
OUTPUT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
REACHED = {
    "type": "object",
    "properties": {"reached": {"type": "array", "items": {"type": "string"}}},
    "required": ["reached"],
}


def tool(name, title, description, input_schema, output_schema):
    return pack.Tool(
        name=name,
        title=title,
        description=description,
        effect=component.Effect.READ,
        tier=pack.Tier.CORE,
        destructive=False,
        idempotent=True,
        open_world=False,
        members=None,
        input_schema=json.dumps(input_schema),
        output_schema=json.dumps(output_schema),
        aliases=[],
    )


def reached():
    """What of the machine is there for a component: nothing, if the host keeps its word."""
    attempts = {
        "a file": lambda: open("/etc/passwd").read(),
        "a directory": lambda: os.listdir("/"),
        "a new file": lambda: open("/tmp/new", "w").write("x"),
        "the network": lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
        "a name server": lambda: socket.getaddrinfo("localhost", 80),
        "a listening socket": lambda: socket.create_server(("127.0.0.1", 0)),
    }
    found = [f"variable {name}" for name in os.environ if name in ("HOME", "PATH", "USER")]
    for what, attempt in attempts.items():
        try:
            attempt()
            found.append(what)
        except OSError:
            pass
    return found


class Pack(exports.Pack):
    def describe(self):
        tools = [
            tool("python_greet", "Greet", "Greet somebody by name.", INPUT, OUTPUT),
            tool("python_reach", "Reach out", "Say what of the machine can be reached.", NOTHING, REACHED),
        ]
        return pack.Manifest(
            name="greeter-python",
            version="0.1.0",
            summary="Greetings from Python.",
            instructions="",
            wants=[],
            migrations=[],
            tools=tools,
            prompts=[],
            config_schema=None,
            render_tool=None,
        )

    def call(self, cx, tool, arguments):
        if tool == "python_reach":
            return pack.Reply(structured=json.dumps({"reached": reached()}), text=None, content=[])
        name = json.loads(arguments)["name"]
        if not name.strip():
            raise Err(
                pack.ToolError(
                    code="NAMELESS",
                    message="the name is empty",
                    remediation="Say who to greet.",
                    blockers=[],
                    context="{}",
                    next_call=None,
                    keep_rows=False,
                    asking=None,
                )
            )
        return pack.Reply(structured=json.dumps({"text": f"Hello, {name}"}), text=None, content=[])
