"""The Python SDK's way to an extension's results, with MCP's tasks: tasks.py TOOL ARGUMENTS URL, or TOLLGATE DATA CONFIG.

The call of the tool must become a task, which this follows to its end. Prints the structured result.
"""

import asyncio
import json
import sys
from typing import Any, Literal

from mcp import Client, types
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.stdio import StdioServerParameters


class CreatedTask(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None


class GetParams(types.RequestParams):
    task_id: str


class GetTask(types.Request[GetParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: GetParams

    name_param = "taskId"


class GotTask(types.Result):
    result_type: str | None = None
    task_id: str
    status: str
    status_message: str | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class Tasks(ClientExtension):
    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self):
        self.followed = 0

    def claims(self):
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self.follow)]

    async def follow(self, created: CreatedTask, context: ClaimContext) -> types.CallToolResult:
        self.followed += 1
        while True:
            request = GetTask(params=GetParams(task_id=created.task_id))
            seen = await context.session.send_request(request, GotTask)
            if seen.status == "completed":
                return types.CallToolResult.model_validate(seen.result)
            assert seen.status in ("working", "input_required"), seen
            await asyncio.sleep((created.poll_interval_ms or 1000) / 1000)


async def main():
    tool, arguments, *server = sys.argv[1:]
    if len(server) == 1:
        target = server[0]
    else:
        program, data, config = server
        target = StdioServerParameters(
            command=program, args=["--data-dir", data, "--config", config, "serve", "--tier", "full"]
        )
    tasks = Tasks()
    async with Client(target, mode="2026-07-28", extensions=[tasks]) as client:
        said = await client.call_tool(tool, json.loads(arguments))
    assert tasks.followed == 1, said
    print(json.dumps(said.structured_content))


asyncio.run(main())
