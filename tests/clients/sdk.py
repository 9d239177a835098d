"""The Python SDK with the entry of an `mcpServers` file: sdk.py FILE. Prints how many tools it lists."""

import asyncio
import json
import os
import re
import sys

import httpx2 as httpx
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def main(path):
    with open(path, encoding="utf-8") as file:
        entry = json.load(file)["mcpServers"]["tollgate"]
    if "command" in entry:
        target = StdioServerParameters(command=entry["command"], args=entry["args"])
        async with Client(target, mode="auto") as client:
            print(f"{len((await client.list_tools()).tools)} tools")
        return
    filled = {name: re.sub(r"\$\{env:(\w+)\}", lambda match: os.environ[match[1]], text)
              for name, text in entry.get("headers", {}).items()}
    async with httpx.AsyncClient(headers=filled) as http:
        async with Client(streamable_http_client(entry["url"], http_client=http), mode="auto") as client:
            print(f"{len((await client.list_tools()).tools)} tools")


asyncio.run(main(sys.argv[1]))
