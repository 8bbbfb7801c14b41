"""Clients of the official Python SDK, of its second version or its first one: whichever is installed. Both look like the second."""

import contextlib

try:
    import httpx2 as web
    from mcp import Client, StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import ElicitResult, ErrorData

    IS_FIRST = False

    def over_stdio(parameters):
        return parameters
except ImportError:
    import httpx as web
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client as over_stdio
    from mcp.client.streamable_http import streamable_http_client
    from mcp.types import ElicitResult, ErrorData

    from first import Client

    IS_FIRST = True

Web = web.AsyncClient

# The two ways of asking: while the request is open, and by answering it with the question, which the first version does not know.
OLDER, NEWEST = "legacy", "2026-07-28"
WAYS = (OLDER,) if IS_FIRST else (OLDER, NEWEST)


def stdio(program, words, env, **options):
    return Client(over_stdio(StdioServerParameters(command=program, args=words, env=env)), **options)


@contextlib.asynccontextmanager
async def http(url, headers, **options):
    async with Web(headers=headers, timeout=60) as connections:
        async with Client(streamable_http_client(url, http_client=connections), **options) as client:
            yield client
