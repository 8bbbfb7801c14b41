"""A client that loses its connection in the middle of a call goes on where it was, and the command does not notice."""

import asyncio
import json
import os

from common import PATIENCE, TOKEN, http, server, tool
from malformed import Talk
from relay import Relay
from sdk import Web

WITNESS = os.path.join(os.environ["CHECK_FOLDER"], "resumed")
LINES = "".join(f"line {number}\n" for number in range(1, 13))


def command(witness):
    return f"for i in $(seq 12); do echo line $i; echo $i >> '{witness}'; sleep 0.3; done"


def witnessed(witness):
    return open(witness, encoding="utf-8").read() == "".join(f"{number}\n" for number in range(1, 13))


class Events:
    """Takes a stream of events apart."""

    def __init__(self):
        self.last, self.progress, self.answer, self.ids = None, [], None, []

    async def read(self, response, enough=None):
        """Reads on to the end, or until this many pieces of progress have come."""
        name, data = None, ""
        async for line in response.aiter_lines():
            if line.startswith("id:"):
                name = line[3:].strip()
            elif line.startswith("data:"):
                data += line[5:].strip()
            elif not line:
                self.take(name, data)
                name, data = None, ""
            if enough is not None and len(self.progress) >= enough:
                return

    def take(self, name, data):
        if name:
            self.last = name
            self.ids.append(name)
        if not data:
            return
        message = json.loads(data)
        if message.get("method") == "notifications/progress":
            self.progress.append(message["params"])
        else:
            assert self.answer is None, message
            self.answer = message


async def check_http_resume():
    """By hand: the connection is dropped twice."""
    call = {
        "jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": {"name": "terminal", "arguments": {"command": command(WITNESS)}, "_meta": {"progressToken": "p"}},
    }
    events = Events()
    async with server() as url:
        async with Web(timeout=PATIENCE) as web:
            headers = (await Talk(web, url).begin()).headers
        # Each of these closes its connections.
        async with Web(timeout=PATIENCE) as web, web.stream("POST", url, json=call, headers=headers) as response:
            assert response.status_code == 200
            await events.read(response, enough=2)
        for enough in (5, None):
            assert events.answer is None
            again = {**headers, "Last-Event-ID": events.last}
            async with Web(timeout=PATIENCE) as web, web.stream("GET", url, headers=again) as response:
                assert response.status_code == 200
                await events.read(response, enough)
    value = events.answer["result"]["structuredContent"]
    assert events.answer["id"] == 5 and (value["output"], value["exit_code"]) == (LINES, 0), value
    assert "".join(progress.get("message", "") for progress in events.progress) == LINES, events.progress
    times = [progress["progress"] for progress in events.progress]
    assert times == sorted(set(times)) and len(events.ids) == len(set(events.ids)), (times, events.ids)
    assert witnessed(WITNESS)


async def check_http_resume_sdk():
    """By the SDK, which comes back by itself: once, since it forgets what it has seen if it is cut off a second time."""
    heard = []
    async with server() as url, Relay(url) as relay, http(relay.url) as client:

        async def progress(done, total, message):
            heard.append(message)
            if len(heard) == 3:
                relay.cut()

        ran = await tool(client, "terminal", {"command": command(WITNESS)}, progress_callback=progress)
        assert (ran["output"], ran["exit_code"]) == (LINES, 0), ran
        assert "".join(message or "" for message in heard) == LINES, heard
        resumed = [request for request in relay.requests() if request.startswith("get ") and "last-event-id: " in request]
        assert resumed, relay.requests()
        assert f"bearer {TOKEN}" in resumed[0], resumed
    assert witnessed(WITNESS)
