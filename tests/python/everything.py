"""Everything that the conformance pack offers, with the Python client: everything.py ERA URL, or ERA TOLLGATE CONFIG.

Prints how many checks passed. Each is one that the client makes of its results by itself as well.
"""

import asyncio
import base64
import sys
import warnings
from contextlib import asynccontextmanager

import anyio
from mcp import Client, MCPDeprecationWarning, MCPError, types
from mcp.client.stdio import StdioServerParameters

# Logs, folders and models are asked for on purpose.
warnings.simplefilter("ignore", MCPDeprecationWarning)

WATCHED = "test://watched-resource"


class Heard:
    """What the server told and asked."""

    def __init__(self):
        self.lines, self.notes, self.asked, self.changed = [], [], [], asyncio.Queue()

    async def log(self, params):
        self.lines.append(params.data)

    async def note(self, progress, total, message):
        self.notes.append(progress)

    async def elicit(self, context, params):
        self.asked.append(params.message)
        answers = {"name": "Ada", "color": "blue", "ok": True, "context": "a test", "username": "ada",
                   "email": "ada@example.org"}
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={name: answers[name] for name in fields if name in answers})

    async def sample(self, context, params):
        self.asked.append(params.messages[0].content.text)
        text = types.TextContent(type="text", text="Paris")
        return types.CreateMessageResult(role="assistant", model="a-model", content=text)

    async def roots(self, context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///work")])

    async def message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            await self.changed.put(str(message.params.uri))
        if isinstance(message, types.ToolListChangedNotification):
            await self.changed.put("tools")


class Checks:
    def __init__(self):
        self.passed = 0

    def holds(self, what, about=None):
        assert what, about
        self.passed += 1


async def tools(client, heard, checks):
    listed = [tool.name for tool in (await client.list_tools()).tools]
    checks.holds("test_simple_text" in listed and len(listed) == len(set(listed)), listed)
    said = await client.call_tool("test_simple_text", {})
    checks.holds(said.content[0].text == "This is a simple text response for testing.", said)
    for tool, kind in [("test_image_content", "image"), ("test_audio_content", "audio")]:
        shown = (await client.call_tool(tool, {})).content
        checks.holds(any(piece.type == kind and base64.b64decode(piece.data) for piece in shown), shown)
    embedded = (await client.call_tool("test_embedded_resource", {})).content
    checks.holds(any(piece.type == "resource" for piece in embedded), embedded)
    failed = await client.call_tool("test_error_handling", {})
    checks.holds(failed.is_error and failed.structured_content["error"]["code"] == "AS_ASKED", failed)
    await client.call_tool("test_tool_with_progress", {}, progress_callback=heard.note)
    checks.holds(len(heard.notes) >= 3 and heard.notes == sorted(heard.notes), heard.notes)
    await client.call_tool("test_tool_with_logging", {})
    checks.holds(len(heard.lines) == 3, heard.lines)


async def questions(client, heard, checks):
    for tool, arguments, answer in [
        ("test_elicitation", {"message": "Who?"}, "ada@example.org"),
        ("test_input_required_result_elicitation", {}, "Hello, Ada!"),
        ("test_input_required_result_multi_round", {}, "Ada likes blue."),
        ("test_input_required_result_request_state", {}, "state-ok"),
        ("test_sampling", {"prompt": "Which city?"}, "LLM response: Paris"),
        ("test_input_required_result_list_roots", {}, "file:///work"),
        ("test_input_required_result_multiple_inputs", {}, "Paris Ada has file:///work"),
    ]:
        said = await client.call_tool(tool, arguments)
        checks.holds(not said.is_error and answer in said.content[0].text, said)
    checks.holds("Who?" in heard.asked and "Which city?" in heard.asked, heard.asked)
    prompt = await client.get_prompt("test_input_required_result_prompt")
    checks.holds("a test" in prompt.messages[-1].content.text, prompt)


async def reading(client, checks):
    prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
    checks.holds("test_prompt_with_arguments" in prompts, prompts)
    prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
    checks.holds("arg1='one', arg2='two'" in prompt.messages[0].content.text, prompt)
    addresses = [str(resource.uri) for resource in (await client.list_resources()).resources]
    checks.holds({"test://static-text", "test://static-binary", WATCHED} <= set(addresses), addresses)
    templates = [template.uri_template for template in (await client.list_resource_templates()).resource_templates]
    checks.holds("test://template/{id}/data" in templates, templates)
    text = (await client.read_resource("test://static-text")).contents[0]
    checks.holds(text.text == "This is the content of the static text resource.", text)
    picture = (await client.read_resource("test://static-binary")).contents[0]
    checks.holds(base64.b64decode(picture.blob).startswith(b"\x89PNG"), picture)
    data = (await client.read_resource("test://template/123/data")).contents[0]
    checks.holds('"id":"123"' in data.text, data)
    try:
        await client.read_resource("test://nothing")
        checks.holds(False, "nothing was read")
    except MCPError as error:
        checks.holds(error.error.data["uri"] == "test://nothing", error)
    template = types.ResourceTemplateReference(type="ref/resource", uri="test://template/{id}/data")
    completed = (await client.complete(template, {"name": "id", "value": "12"})).completion
    checks.holds(completed.values == ["123"], completed)


@asynccontextmanager
async def listening(client, heard, era):
    """Within, what changes comes into the queue."""
    if era == "legacy":
        await client.subscribe_resource(WATCHED)
        yield
        return
    async with client.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as subscription:

        async def pass_on():
            async for event in subscription:
                await heard.changed.put(str(getattr(event, "uri", "tools")))

        passing = asyncio.create_task(pass_on())
        yield
        passing.cancel()


async def changes(client, heard, checks, era):
    before = {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}
    async with listening(client, heard, era):
        await client.call_tool("test_trigger_tool_change", {})
        awaited = {"tools", WATCHED}
        with anyio.fail_after(30):
            while awaited:
                awaited.discard(await heard.changed.get())
        checks.holds(True)
    after = {tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools}
    checks.holds(before ^ after == {"test_now_and_then"}, before ^ after)


async def main(era, target, *config):
    server = target
    if config:
        server = StdioServerParameters(command=target, args=["--config", *config, "serve"])
    heard, checks = Heard(), Checks()
    client = Client(
        server,
        mode=era,
        log_level="info",
        logging_callback=heard.log,
        elicitation_callback=heard.elicit,
        sampling_callback=heard.sample,
        list_roots_callback=heard.roots,
        message_handler=heard.message,
    )
    async with client:
        if era == "legacy":
            await client.set_logging_level("info")
        await tools(client, heard, checks)
        await questions(client, heard, checks)
        await reading(client, checks)
        await changes(client, heard, checks, era)
    print(checks.passed)


asyncio.run(main(*sys.argv[1:]))
