"""What is no message, and what is no message that can be taken: each with its status and its code, and nothing ends the server."""

import asyncio
import json
import os
import subprocess

from common import PATIENCE, PROGRAM, TOKEN, gone, server, there
from sdk import Web

FIRST = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
BEGIN = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": FIRST}
BEGUN = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
LARGEST = 64 * 1024 * 1024

# A body, and the code and the number of the request that its answer has.
NO_JSON = [
    (b"nonsense", None), (b"{", None), (b'{"jsonrpc":"2.0","id":3,}', None), (b"\xff\xfe\x00", None),
    (b'{"jsonrpc":"2.0","id":3,"method":"\xff"}', 3), (b'{"jsonrpc":"2.0","id":4,"method":"\\ud800"}', 4),
]
NO_REQUEST = [
    (b"{}", None), (b"[]", None), (b"[1]", None), (json.dumps([LIST]).encode(), None), (b"7", None), (b'"x"', None),
    (b"null", None), (b'{"jsonrpc":"2.0"}', None), (b'{"jsonrpc":"2.0","id":9}', 9), (b"[" * 1000 + b"]" * 1000, None),
    (b'{"jsonrpc":"1.0","id":9,"method":"ping"}', 9), (b'{"id":9,"method":"ping"}', 9),
    (b'{"jsonrpc":"2.0","id":9,"method":7}', 9), (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None),
    (b'{"jsonrpc":"2.0","method":1,"params":"bar"}', None),
]
NO_PARAMETERS = [(b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":["terminal"]}', 9)]
BODIES = [(-32700, row) for row in NO_JSON] + [(-32600, row) for row in NO_REQUEST] + [(-32602, row) for row in NO_PARAMETERS]


def told(answer, code, number, of):
    assert answer["jsonrpc"] == "2.0" and answer["error"]["message"], (of, answer)
    assert (answer["error"]["code"], answer.get("id")) == (code, number), (of, answer)


async def check_stdio_codes():
    """Over standard input each is answered in its turn."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "mcp", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    async def answer(line):
        process.stdin.write(line + b"\n")
        return json.loads(await asyncio.wait_for(process.stdout.readline(), PATIENCE))

    assert (await answer(json.dumps(BEGIN).encode()))["result"]["serverInfo"]["name"] == "hostel"
    process.stdin.write(json.dumps(BEGUN).encode() + b"\n")
    for code, (line, number) in BODIES:
        told(await answer(line), code, number, line)
    told(await answer(b'{"jsonrpc":"2.0","id":5,"method":"' + b"x" * LARGEST + b'"}'), -32600, None, "too long")
    told(await answer(b'{"jsonrpc":"2.0","id":5,"method":"no/such"}'), -32601, 5, "an unknown method")
    told(await answer(b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":7}}'), -32602, 5, "no name")
    assert len((await answer(json.dumps(LIST).encode()))["result"]["tools"]) == 7
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


class Talk:
    """Speaks HTTP without any help."""

    def __init__(self, web, url):
        self.web, self.url = web, url
        self.headers = {
            "Accept": "application/json, text/event-stream", "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
        }

    async def begin(self):
        """Begins a session."""
        begun = await self.ask(BEGIN)
        self.headers |= {"Mcp-Session-Id": begun.headers["mcp-session-id"], "Mcp-Protocol-Version": FIRST["protocolVersion"]}
        assert (await self.ask(BEGUN)).status_code == 202
        return self

    async def ask(self, body, method="POST", **headers):
        """Sends one request. A header that is None is left out."""
        merged = {name.lower(): value for name, value in self.headers.items()}
        merged |= {name.replace("_", "-").lower(): value for name, value in headers.items()}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        merged = {name: value for name, value in merged.items() if value is not None}
        return await self.web.request(method, self.url, content=content, headers=merged)

    async def refused(self, body, status, code, number=None, **more):
        """Requires a refusal with this status, as a message with this code."""
        answer = await self.ask(body, **more)
        of = (body and body[:80] if isinstance(body, bytes) else body, more)
        assert answer.status_code == status, (of, answer.status_code, answer.text)
        assert answer.headers["content-type"] == "application/json", (of, answer.headers)
        told(answer.json(), code, number, of)

    async def works(self):
        await self.works_as(LIST["id"])

    async def works_as(self, number):
        listed = await self.ask(LIST | {"id": number})
        assert listed.status_code == 200 and '"tools"' in listed.text, listed


async def check_http_codes():
    """Over HTTP each has a status besides, with a session or without."""
    async with server() as url, Web(timeout=PATIENCE) as web:
        alone, talk = Talk(web, url), await Talk(web, url).begin()
        newest = {"Mcp_Session_Id": None, "Mcp_Protocol_Version": "2026-07-28"}
        for code, (body, number) in [*BODIES, (-32700, (b"", None)), (-32700, (b" \n", None))]:
            await talk.refused(body, 400, code, number)
            await talk.refused(body, 400, code, number, **newest)
            await alone.refused(body, 400, code, number)
        # A notification and an answer that cannot be read are refused, and not answered as requests.
        await talk.refused(b'{"jsonrpc":"2.0","method":"notifications/x","params":7}', 400, -32600)
        await talk.works()

        too_large = b'{"jsonrpc":"2.0","id":9,"method":"' + b"x" * LARGEST + b'"}'
        await talk.refused(too_large, 413, -32600)
        for kind in ("text/plain", "application/jsonp", "application/x-www-form-urlencoded", None):
            await talk.refused(LIST, 415, -32600, Content_Type=kind)
        for accept in ("application/json", "text/event-stream", "text/html", "*/*;q=0", ""):
            await talk.refused(LIST, 406, -32600, Accept=accept)
        await talk.refused(None, 406, -32600, method="GET", Accept="application/json")
        await talk.works()

        for session in ("nope", "00000000-0000-4000-8000-000000000000", "x" * 4000):
            await talk.refused(LIST, 404, -32600, Mcp_Session_Id=session)
            await talk.refused(None, 404, -32600, method="GET", Mcp_Session_Id=session)
            await talk.refused(None, 404, -32600, method="DELETE", Mcp_Session_Id=session)
        for method, body in (("POST", LIST), ("GET", None), ("DELETE", None)):
            await talk.refused(body, 400, -32600, method=method, Mcp_Session_Id=None)
            for version in ("1999-01-01", "2025-06-19", "latest"):
                await talk.refused(body, 400, -32600, method=method, Mcp_Protocol_Version=version)
        await alone.refused({**BEGIN, "params": {}}, 400, -32602, 1)
        await alone.refused(BEGIN, 400, -32600, 1, Mcp_Protocol_Version="2025-03-26")
        for method in ("PUT", "PATCH", "OPTIONS"):
            await talk.refused(None, 405, -32600, method=method)
            assert "POST" in (await talk.ask(None, method=method)).headers["allow"]
        # Who may not come in is told so in the same form.
        for token in ("Bearer wrong", "Basic " + TOKEN, "", None):
            await talk.refused(LIST, 401, -32600, Authorization=token)
            await alone.refused(BEGIN, 401, -32600, Authorization=token)
            assert (await talk.ask(LIST, Authorization=token)).headers["www-authenticate"] == "Bearer"
        for who in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            await talk.refused(LIST, 403, -32600, **who)
            assert "www-authenticate" not in (await talk.ask(LIST, **who)).headers
        for task in ("", "x" * 300):
            await alone.refused(BEGIN, 400, -32600, Hostel_Task=task)
        elsewhere = Talk(web, url.replace("/mcp", "/other"))
        await elsewhere.refused(BEGIN, 404, -32600)
        # A version that nobody knows yet is answered with one that both do.
        newer = {**BEGIN, "params": {**FIRST, "protocolVersion": "2099-01-01"}}
        assert '"protocolVersion":"2025-11-25"' in (await alone.ask(newer)).text
        assert (await talk.ask({"jsonrpc": "2.0", "id": 5, "method": "no/such"})).text.count("-32601") == 1
        await talk.works()
        assert (await talk.ask(None, method="DELETE")).status_code == 204
        await talk.refused(LIST, 404, -32600)
        await talk.refused(None, 404, -32600, method="DELETE")
        await (await Talk(web, url).begin()).works()


async def check_http_unread():
    """A client that is refused before it has sent all hears why, and can go on by the same connection."""
    body = json.dumps(BEGIN).encode()

    def head(token):
        return (
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()

    async with server() as url:
        host, port = url.split("/")[2].split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head("wrong"))
        await writer.drain()
        # Long enough for the refusal to be made.
        await asyncio.sleep(0.3)
        writer.write(body + head(TOKEN) + body)
        await writer.drain()
        first = await asyncio.wait_for(reader.readuntil(b"TOKEN`\"}}"), PATIENCE)
        assert first.startswith(b"HTTP/1.1 401 "), first
        second = await asyncio.wait_for(reader.readuntil(b"serverInfo"), PATIENCE)
        assert second.startswith(b"HTTP/1.1 200 "), second
        writer.close()


def sleeps(number, command):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "terminal", "arguments": {"command": command}}}


async def check_stdio_same_id():
    """A number that is in use is refused to the second, and the first goes on."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "mcp", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    def say(message):
        process.stdin.write(json.dumps(message).encode() + b"\n")

    async def heard():
        return json.loads(await asyncio.wait_for(process.stdout.readline(), PATIENCE))

    say(BEGIN)
    assert (await heard())["id"] == 1
    say(BEGUN)
    mark = f"sleep 321.{process.pid}"
    for number in (7, "7"):
        say(sleeps(number, f"{mark}; echo first"))
    await there(mark)
    for method in ("tools/call", "tools/list", "ping"):
        say({"jsonrpc": "2.0", "id": 7, "method": method, "params": sleeps(7, "echo second")["params"]})
        told(await heard(), -32600, 7, method)
    # Others are answered.
    say(LIST | {"id": 8})
    assert len((await heard())["result"]["tools"]) == 7
    subprocess.run(["pkill", "-f", mark], check=True)
    first = [await heard() for _ in range(2)]
    assert {answer["id"] for answer in first} == {7, "7"} and all("first" in json.dumps(answer) for answer in first), first
    # It is free again, also where its request was taken back.
    for round in range(200):
        say({"jsonrpc": "2.0", "id": 7, "method": "ping"})
        answer = await heard()
        assert answer["id"] == 7 and "result" in answer, (round, answer)
    say(sleeps(9, mark))
    await there(mark)
    say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
    await gone(mark)
    say(sleeps(10, "true"))
    assert (await heard())["id"] == 10
    say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
    answer = await heard()
    assert answer["id"] == 9 and "result" in answer, answer
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


async def check_http_same_id():
    """As over standard input, within a session."""
    async with server() as url, Web(timeout=PATIENCE) as web:
        talk, other = await Talk(web, url).begin(), await Talk(web, url).begin()
        mark = f"sleep 322.{os.getpid()}"
        first = asyncio.create_task(talk.ask(sleeps(7, f"{mark}; echo first")))
        await there(mark)
        await talk.refused(sleeps(7, "echo second"), 400, -32600, 7)
        await talk.refused(LIST, 400, -32600, 7)
        await talk.works_as(8)
        # Of another session it is another.
        await other.works()
        subprocess.run(["pkill", "-f", mark], check=True)
        answer = await first
        assert answer.status_code == 200 and "first" in answer.text, answer.text
        for _ in range(20):
            await talk.works()


async def check_http_ended():
    """A call whose session is ended meanwhile is answered with an error, and what it had started is gone."""
    async with server() as url, Web(timeout=PATIENCE) as web:
        talk = await Talk(web, url).begin()
        mark = f"sleep 323.{os.getpid()}"
        calls = [asyncio.create_task(talk.ask(sleeps(number, f"{mark}; echo never"))) for number in (7, 8)]
        await there(mark)
        assert (await talk.ask(None, method="DELETE")).status_code == 204
        await talk.refused(LIST, 404, -32600)
        for number, call in zip((7, 8), calls):
            answer = await call
            (data,) = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
            told(json.loads(data), -32000, number, answer.text)
        await gone(mark)
        await (await Talk(web, url).begin()).works()
