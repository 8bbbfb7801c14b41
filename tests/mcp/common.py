"""What all checks of `hostel mcp` share: the server, its clients, and what is looked at besides."""

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys

import sdk

PROGRAM = sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds that a machine may need for anything that has nothing to wait for: it may be building something besides.
PATIENCE = 60
TOKEN = "test-token-0123456789abcdef"
TOOLS = {"terminal", "process", "read_file", "write_file", "patch", "search_files", "execute_code"}


def stdio(*words, **options):
    return sdk.stdio(PROGRAM, ["mcp", *words], dict(os.environ), **options)


async def tool(client, name, arguments, **options):
    """Calls a tool, and holds its answer to what the protocol asks for."""
    result = await client.call_tool(name, arguments, **options)
    value = result.structured_content
    assert json.loads(result.content[0].text) == value, result
    assert result.is_error == (value.get("error") is not None), result
    return value


@contextlib.asynccontextmanager
async def server(*words, token=TOKEN):
    """Starts the server on a free port, and gives its address."""
    env = dict(os.environ, HOSTEL_MCP_TOKEN=token)
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "mcp", "--http", "127.0.0.1:0", *words, env=env,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE)).decode()
        url = re.search(r"http://\S+/mcp", line)[0]
        drain = asyncio.create_task(process.stderr.read())
        yield url
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), PATIENCE) in (0, 143), process.returncode
        assert TOKEN not in (await drain).decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def http(url, token=TOKEN, **options):
    return sdk.http(url, {"Authorization": f"Bearer {token}"}, **options)


async def gone(text, limit=10):
    """Waits until no process has `text` in its command line."""
    for _ in range(limit * 20):
        if subprocess.run(["pgrep", "-f", text], capture_output=True).returncode != 0:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{text} is still there")


async def there(text, limit=10):
    for _ in range(limit * 50):
        if subprocess.run(["pgrep", "-f", text], capture_output=True).returncode == 0:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{text} has not come")


