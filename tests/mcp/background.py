"""Over HTTP: what becomes of background processes, and what can be read of them and of long outputs."""

import asyncio
import json
import os
import re
import subprocess

from common import PATIENCE, PROGRAM, gone, http, server, there, tool
from malformed import Talk
from sdk import Web


def processes():
    """Returns the processes of the home."""
    listed = subprocess.run([PROGRAM, "process", "list", "--json"], check=True, capture_output=True)
    return json.loads(listed.stdout)["processes"]


async def start(client, mark):
    started = await tool(client, "terminal", {"command": f"echo from {mark}; exec {mark}", "background": True})
    return started["session_id"]


async def check_http_background():
    """A background process stays when its session ends, however it ends, and goes with its task."""
    marks = [f"sleep {number}.{os.getpid()}" for number in (311, 312, 313)]
    async with server("--idle", "6") as url:
        # A client that says good-bye.
        async with http(url) as client:
            first = await start(client, marks[0])
            await there(marks[0])
        # Of another session nothing is seen.
        async with http(url) as client:
            assert (await tool(client, "process", {"action": "list"}))["processes"] == []
            assert (await tool(client, "process", {"action": "kill", "session_id": first}))["status"] == "not_found"
            assert (await client.list_resources()).resources == []
        # One of which nothing is heard any more, and one that is there when the server is told to end.
        async with Web(timeout=PATIENCE) as web:
            talk = await Talk(web, url).begin()
            arguments = {"command": f"exec {marks[1]}", "background": True}
            call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "terminal", "arguments": arguments}}
            assert "proc_" in (await talk.ask(call)).text
            await there(marks[1])
            status = 200
            while status == 200:
                # Longer than it takes for a session to be forgotten: to ask would keep it.
                await asyncio.sleep(8)
                status = (await talk.ask({**call, "method": "tools/list", "params": {}})).status_code
            assert status == 404, status
            talk = await Talk(web, url).begin()
            call["params"]["arguments"]["command"] = f"exec {marks[2]}"
            assert "proc_" in (await talk.ask(call)).text
            await there(marks[2])
    rows = processes()
    tasks = {row["task"] for row in rows}
    assert len(tasks) == 3 and all(task.startswith("mcp-") for task in tasks), rows
    assert {row["status"] for row in rows} == {"running"}, rows
    for mark in marks:
        await there(mark, 1)
    for row in rows:
        subprocess.run([PROGRAM, "env", "cleanup", row["task"]], check=True, capture_output=True)
    for mark in marks:
        await gone(mark)


async def check_http_resources():
    """Logs and whole outputs are listed and read over HTTP as well, by their own session."""
    async with server() as url, http(url) as client:
        assert (await client.list_resources()).resources == []
        ran = await tool(client, "terminal", {"command": "seq 1 300000"})
        name = os.path.basename(ran["full_output_path"])
        started = await tool(client, "terminal", {"command": "echo from behind; sleep 60", "background": True})
        await tool(client, "process", {"action": "wait", "session_id": started["session_id"], "timeout": 1})
        log = f"hostel://process/{started['session_id']}/log"
        listed = {str(resource.uri): resource for resource in (await client.list_resources()).resources}
        assert set(listed) == {log, f"hostel://output/{name}"}, listed
        assert {resource.mime_type for resource in listed.values()} == {"text/plain"}, listed
        assert "from behind\n" in (await client.read_resource(log)).contents[0].text
        # More than a megabyte comes in parts, each of which says where the next begins.
        whole, uri, parts = "", f"hostel://output/{name}", 0
        while uri:
            text = (await client.read_resource(uri)).contents[0].text
            text, _, more = text.partition("\n[cut here; more at ")
            whole, uri, parts = whole + text, more.rstrip("]\n"), parts + 1
        assert whole == "".join(f"{number}\n" for number in range(1, 300001)) and parts > 1, (len(whole), parts)
        async with http(url) as other:
            assert (await other.list_resources()).resources == []
            for uri in (log, f"hostel://output/{name}", "hostel://output/../config.yaml", "file:///etc/passwd"):
                try:
                    read = await other.read_resource(uri)
                except Exception as error:
                    assert "there is nothing at" in str(error), error
                else:
                    raise AssertionError((uri, read))
        # Whoever takes up the task that has made it has it too.
        async with Web(headers={"Hostel-Task": "mine"}, timeout=PATIENCE) as web:
            first, second = await Talk(web, url).begin(), await Talk(web, url).begin()
            call = {"name": "terminal", "arguments": {"command": "seq 1 300000"}}
            text = (await first.ask({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call})).text
            params = {"uri": "hostel://output/" + re.search(r"/(out-[\w-]+[.]log)", text)[1]}
            text = (await second.ask({"jsonrpc": "2.0", "id": 6, "method": "resources/read", "params": params})).text
            assert "1\\n2\\n3\\n" in text, text[:300]
            text = (await second.ask({"jsonrpc": "2.0", "id": 7, "method": "resources/list", "params": {}})).text
            assert params["uri"] in text, text[:300]
        await tool(client, "process", {"action": "kill", "session_id": started["session_id"]})
