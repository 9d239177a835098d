"""Drives tollgate with the Python client: client.py MODE URL, or client.py MODE TOLLGATE DATA_DIR."""

import asyncio
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def main(mode: str, target: str, *data_dir: str) -> None:
    server = target
    if data_dir:
        server = StdioServerParameters(command=target, args=["--data-dir", *data_dir, "serve", "--tier", "full"])
    async with Client(server, mode=mode) as client:
        page = await client.list_tools()
        tools = page.tools
        while page.next_cursor:
            page = await client.list_tools(cursor=page.next_cursor)
            tools += page.tools
        listed = [tool.name for tool in tools]
        assert len(listed) == len(set(listed)), listed
        assert any(tool.name == "task_create" and tool.output_schema for tool in tools), listed

        created = await client.call_tool(
            "task_create",
            {
                "title": "From Python",
                "spec_markdown": "# Goal\nShip.\n",
                "workspace": "w",
                "initial_phase": "spec_draft",
                "actor": "py",
                "actor_role": "orchestrator",
            },
        )
        assert not created.is_error, created
        task_id = created.structured_content["task"]["id"]

        task = await client.call_tool("task_get", {"task_id": task_id})
        assert task.structured_content["task"]["title"] == "From Python", task

        refused = await client.call_tool("task_get", {"task_id": "tsk_none"})
        assert refused.is_error, refused
        assert refused.structured_content["error"]["code"] == "NOT_FOUND", refused
    print("ok")


asyncio.run(main(*sys.argv[1:]))
