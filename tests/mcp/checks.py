"""Drives `hostel mcp` with the official Python SDK. Usage: checks.py CHECK PROGRAM. Prints `ok` if the check holds."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib

import yaml

import background
import malformed
import resume
import sdk
from common import HERE, PATIENCE, PROGRAM, TOKEN, TOOLS, gone, http, server, stdio, there, tool
from relay import Relay
from sdk import NEWEST, OLDER, WAYS, ElicitResult, ErrorData, Web

async def listing(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == TOOLS, set(tools)
    for tool in tools.values():
        assert tool.description and tool.input_schema["type"] == "object", tool
        assert tool.output_schema["type"] == "object", tool
    assert tools["read_file"].annotations.read_only_hint is True
    assert tools["search_files"].annotations.read_only_hint is True
    assert tools["terminal"].annotations.read_only_hint is False
    assert tools["terminal"].annotations.destructive_hint is True
    annotations = tools["execute_code"].annotations
    assert annotations.read_only_hint is False and annotations.destructive_hint is True, annotations
    assert annotations.idempotent_hint is False, annotations
    assert client.instructions and "terminal" in client.instructions
    assert client.server_capabilities.prompts is None


async def calls(client):
    ran = await tool(client, "terminal", {"command": "cd /tmp; export STEP=7; echo $((6*7)); exit 3"})
    assert (ran["output"], ran["exit_code"], ran["error"]) == ("42\n", 3, None), ran
    ran = await tool(client, "terminal", {"command": "echo $STEP"})
    assert ran["exit_code"] == 0, ran
    path = os.path.join(os.environ["CHECK_FOLDER"], "a.txt")
    assert (await tool(client, "write_file", {"path": path, "content": "one\ntwo\n"}))["bytes_written"] == 8
    edited = await tool(client, "patch", {"path": path, "old_string": "two", "new_string": "2"})
    assert edited["success"] and "+2" in edited["diff"], edited
    assert "2|2" in (await tool(client, "read_file", {"path": path}))["content"]
    found = await tool(client, "search_files", {"pattern": "^2$", "path": os.path.dirname(path)})
    assert found["matches"][0]["line"] == 2, found
    code = f"hostel_tools read_file '{json.dumps({'path': path})}' && echo aside >&2; exit 3"
    ran = await tool(client, "execute_code", {"language": "bash", "code": code})
    assert (ran["status"], ran["exit_code"], ran["tool_calls_made"]) == ("error", 3, 1), ran
    assert "2|2" in ran["output"] and ran["stderr"] == "aside\n", ran
    refused = await client.call_tool("terminal", {"command": 7})
    assert refused.is_error, refused


async def check_stdio_list():
    async with stdio() as client:
        await listing(client)


async def check_stdio_call():
    async with stdio() as client:
        await calls(client)


async def check_stdio_unknown():
    async with stdio() as client:
        try:
            answer = await client.call_tool("no_such_tool", {})
            assert answer.is_error, answer
        except Exception as error:
            assert "no_such_tool" in str(error), error
        await calls(client)


async def streams(client):
    heard = []

    async def progress(done, total, message):
        heard.append((done, message))

    command = "for i in 1 2 3; do echo line $i; sleep 0.4; done"
    ran = await tool(client, "terminal", {"command": command}, progress_callback=progress)
    assert ran["output"] == "line 1\nline 2\nline 3\n", ran
    assert "".join(message or "" for _, message in heard) == ran["output"], heard
    assert len(heard) >= 3 and [done for done, _ in heard] == sorted({done for done, _ in heard}), heard


async def check_stdio_stream():
    async with stdio() as client:
        await streams(client)


async def cancels(client):
    mark = f"sleep 300.{os.getpid()}"
    with contextlib.suppress(Exception, asyncio.CancelledError):
        call = client.call_tool("terminal", {"command": f"setsid {mark} & {mark}; echo never"})
        task = asyncio.create_task(call)
        await there(mark)
        task.cancel()
        await task
    await gone(mark)
    assert (await tool(client, "terminal", {"command": "echo on"}))["output"] == "on\n"


async def check_stdio_cancel():
    async with stdio() as client:
        await cancels(client)


async def check_stdio_malformed():
    """Nothing that a client can write ends the server."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "mcp", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    nonsense = [b"\n", b"nonsense\n", b"{}\n", b"[]\n", b"[1]\n", b"\xff\xfe\x00\n", b'{"jsonrpc":"2.0"}\n', b"null\n"]
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "terminal", "arguments": [1]}},
        {"jsonrpc": "2.0", "id": 3, "method": "no/such", "params": {}},
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "terminal", "arguments": {"command": "echo fine"}}},
    ]
    process.stdin.write(b"".join(nonsense[:1]))
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n" + b"".join(nonsense))
    await process.stdin.drain()
    answers = {}
    while 4 not in answers:
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
        assert line, "the server has ended"
        answer = json.loads(line)
        answers[answer.get("id")] = answer
    assert answers[4]["result"]["structuredContent"]["output"] == "fine\n", answers
    assert "error" in answers[3] and ("error" in answers[2] or answers[2]["result"]["isError"]), answers
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


async def check_stdio_vanishes():
    """A client that is gone takes its command along, and leaves its background process to the task."""
    mark, kept = f"sleep 301.{os.getpid()}", f"sleep 302.{os.getpid()}"
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "mcp", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}

    def call(number, arguments):
        params = {"name": "terminal", "arguments": arguments}
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}

    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(2, {"command": f"exec {kept}", "background": True}),
        call(3, {"command": f"{mark}; echo never"}),
    ]
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
    await process.stdin.drain()
    await there(mark)
    await there(kept)
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    await gone(mark)
    await there(kept, 1)
    subprocess.run([PROGRAM, "env", "cleanup", "default"], check=True, capture_output=True)
    await gone(kept)


async def check_stdio_resources():
    async with stdio() as client:
        ran = await tool(client, "terminal", {"command": "seq 1 60000"})
        assert "full_output_path" in ran, ran
        started = await tool(client, "terminal", {"command": "echo from behind; sleep 60", "background": True})
        await tool(client, "process", {"action": "wait", "session_id": started["session_id"], "timeout": 1})
        resources = (await client.list_resources()).resources
        texts = {}
        for resource in resources:
            texts[str(resource.uri)] = (await client.read_resource(resource.uri)).contents[0].text
        assert any("from behind" in text for text in texts.values()), list(texts)
        assert any(text.startswith("1\n2\n") for text in texts.values()), list(texts)
        for outside in ["hostel://output/../config.yaml", "hostel://output/%2e%2e%2fconfig.yaml", "file:///etc/passwd"]:
            try:
                read = await client.read_resource(outside)
                raise AssertionError(f"{outside}: {read}")
            except AssertionError:
                raise
            except Exception:
                pass
        await tool(client, "process", {"action": "kill", "session_id": started["session_id"]})


async def check_http_all():
    async with server() as url:
        async with http(url) as client:
            await listing(client)
            await calls(client)
            await streams(client)
            await cancels(client)


async def check_http_twenty():
    """Twenty at once, each with a session of its own."""
    async with server() as url:

        async def one(number):
            async with http(url) as client:
                await tool(client, "terminal", {"command": f"export N={number}; cd /tmp"})
                await tool(client, "terminal", {"command": "sleep 0.5"})
                return (await tool(client, "terminal", {"command": "echo $N"}))["output"]

        found = await asyncio.gather(*(one(number) for number in range(20)))
        kept = found == [f"{number}\n" for number in range(20)]
        assert kept, found


async def check_stdio_twenty():
    """Twenty at once, each with a server of its own and a task of its own."""

    async def one(number):
        async with stdio("--task", f"t{number}") as client:
            await tool(client, "terminal", {"command": f"export N={number}; cd /tmp"})
            await tool(client, "terminal", {"command": "sleep 0.5"})
            return (await tool(client, "terminal", {"command": "echo $N; pwd"}))["output"]

    found = await asyncio.gather(*(one(number) for number in range(20)))
    assert found == [f"{number}\n/tmp\n" for number in range(20)], found
    # Twenty that share one task lose nothing of each other's.
    async def shared(number):
        async with stdio() as client:
            await tool(client, "terminal", {"command": f"export N{number}={number}"})

    await asyncio.gather(*(shared(number) for number in range(20)))
    async with stdio() as client:
        script = "for i in $(seq 0 19); do eval echo \\$N$i; done"
        assert (await tool(client, "terminal", {"command": script}))["output"] == "".join(f"{n}\n" for n in range(20))


async def waits(client):
    """What a background process prints is seen while it is waited for, and what it has printed before is not."""
    mark = os.path.join(os.environ["CHECK_FOLDER"], "go-on")
    command = (
        f"echo before; read -r go; i=0; while [ ! -e '{mark}' ]; do i=$((i + 1)); echo step $i; sleep 0.1; done; "
        "printf '\\033[1mline 1'; sleep 0.4; printf '\\033[0m\\n'; exit 4"
    )
    started = await tool(client, "terminal", {"command": command, "background": True, "stdin": True})
    one = {"session_id": started["session_id"]}
    heard = []

    async def progress(done, total, message):
        heard.append((done, message or ""))
        if len(heard) == 3:
            open(mark, "w").close()

    async def printed():
        while "before\n" not in (await tool(client, "process", {**one, "action": "poll"}))["output_preview"]:
            await asyncio.sleep(0.05)

    await asyncio.wait_for(printed(), PATIENCE)
    short = await tool(client, "process", {**one, "action": "wait", "timeout": 0.3}, progress_callback=progress)
    assert short["status"] == "timeout" and heard == [], (short, heard)
    await tool(client, "process", {**one, "action": "submit", "data": "go"})
    ended = await tool(client, "process", {**one, "action": "wait"}, progress_callback=progress)
    assert (ended["status"], ended["exit_code"]) == ("exited", 4), ended
    text = "".join(message for _, message in heard)
    assert text.startswith("step ") and ended["output"].endswith(text) and text.endswith("\nline 1\n"), (text, ended)
    assert len(heard) >= 3 and [done for done, _ in heard] == sorted({done for done, _ in heard}), heard
    os.remove(mark)
    # A flood is cut, and holds nobody up.
    started = await tool(client, "terminal", {"command": "sleep 0.5; head -c 8000000 /dev/zero | tr '\\0' x; echo; echo end", "background": True})
    heard.clear()
    one = {"session_id": started["session_id"]}
    ended = await tool(client, "process", {**one, "action": "wait"}, progress_callback=progress)
    text = "".join(message for _, message in heard)
    assert ended["exit_code"] == 0 and text.endswith("x\nend\n"), (ended["exit_code"], text[-50:])
    assert len(text) < 4000000 and " bytes left out]\n" in text, len(text)


async def check_stdio_wait():
    async with stdio() as client:
        await waits(client)


async def check_http_wait():
    async with server() as url, http(url) as client:
        await waits(client)


async def check_http_doors():
    """The token, the host and the origin are looked at."""
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first}
    accept = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {TOKEN}"}
    async with server() as url, Web(timeout=PATIENCE) as web:

        async def code(**headers):
            headers = {key.replace("_", "-"): value for key, value in headers.items()}
            return (await web.post(url, json=body, headers={**accept, **headers})).status_code

        assert await code() == 200
        assert await code(Authorization="Bearer wrong") == 401
        assert await code(Authorization="") == 401
        assert await code(Host="evil.example") == 403
        assert await code(Origin="https://evil.example") == 403
        port = url.split(":")[2].split("/")[0]
        assert await code(Origin=f"http://127.0.0.1:{port}") == 200
        assert (await web.post(url, content=b"nonsense", headers={**accept, "Content-Type": "application/json"})).status_code in (400, 415, 422)
        assert await code() == 200


async def check_http_reconnect():
    """A session outlives its connection."""
    async with server() as url, Web(timeout=PATIENCE) as web:
        headers = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {TOKEN}"}
        first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}

        async def post(client, number, method, params):
            body = {"jsonrpc": "2.0", "method": method, "params": params}
            if number:
                body["id"] = number
            return await client.post(url, json=body, headers=headers)

        begun = await post(web, 1, "initialize", first)
        headers["Mcp-Session-Id"] = begun.headers["mcp-session-id"]
        headers["Mcp-Protocol-Version"] = "2025-06-18"
        await post(web, None, "notifications/initialized", {})
        call = {"name": "terminal", "arguments": {"command": "export KEPT=yes"}}
        assert (await post(web, 2, "tools/call", call)).status_code == 200
        async with Web(timeout=PATIENCE) as again:
            call = {"name": "terminal", "arguments": {"command": "echo kept=$KEPT"}}
            answer = (await post(again, 3, "tools/call", call)).text
            assert "kept=yes" in answer, answer
            assert (await again.delete(url, headers=headers)).status_code in (200, 202, 204)
            assert (await post(again, 4, "tools/call", call)).status_code == 404


async def check_http_vanishes():
    """A client that is killed has its command killed, and its background process kept."""
    mark, kept = f"sleep 303.{os.getpid()}", f"sleep 304.{os.getpid()}"
    async with server() as url:
        client = await asyncio.create_subprocess_exec(
            sys.executable, __file__, "http_victim", PROGRAM, url, str(os.getpid()), env=dict(os.environ)
        )
        await there(mark)
        client.kill()
        await client.wait()
        await gone(mark, 30)
        await there(kept, 1)
    subprocess.run(["pkill", "-f", kept], check=True)


async def check_http_victim():
    """The client that `http_vanishes` kills."""
    url, number = sys.argv[3:]
    async with http(url) as client:
        await tool(client, "terminal", {"command": f"sleep 304.{number}", "background": True})
        await client.call_tool("terminal", {"command": f"sleep 303.{number}; echo never"})


def snippets():
    """Returns what the documentation tells each client to start."""
    page = open(os.path.join(HERE, "../../docs/mcp.md"), encoding="utf-8").read()
    readers = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}
    for kind, text in re.findall(r"```(json|toml|yaml)\n(.*?)```", page, re.S):
        yield from servers(readers[kind](text))


def servers(value):
    if isinstance(value, list):
        for item in value:
            yield from servers(item)
    elif isinstance(value, dict):
        words = value.get("command", value.get("cmd"))
        if words is None:
            for item in value.values():
                yield from servers(item)
        else:
            words = words if isinstance(words, list) else [words]
            yield [*words, *value.get("args", [])]


async def check_snippets():
    os.environ["PATH"] = os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]
    found = list(snippets())
    assert len(found) == 7, found
    for command, *args in found:
        async with sdk.stdio(command, args, dict(os.environ)) as client:
            await listing(client)
    page = open(os.path.join(HERE, "../../docs/mcp.md"), encoding="utf-8").read()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.S)
    ran = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(ran.communicate(), 60)
    assert ran.returncode == 0 and out.startswith(b"Linux"), out


async def check_http_snippets():
    """What the documentation tells clients that speak HTTP, with its header."""
    page = open(os.path.join(HERE, "../../docs/mcp.md"), encoding="utf-8").read()
    blocks = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", page, re.S)]
    found = [one for block in blocks for one in block.get("mcpServers", {}).values() if "url" in one]
    assert len(found) == 1, found
    async with server() as url:
        os.environ["HOSTEL_MCP_TOKEN"] = TOKEN
        for one in found:
            assert one.pop("type") == "http", one
            # Whoever starts the server as the page says finds it there; here any port must do.
            assert one["url"] == "http://127.0.0.1:7677/mcp" and "--http 127.0.0.1:7677" in page, one
            headers = {name: os.path.expandvars(value) for name, value in one["headers"].items()}
            assert headers == {"Authorization": f"Bearer {TOKEN}"}, headers
            async with sdk.http(url, headers) as client:
                await listing(client)
                ran = await tool(client, "terminal", {"command": "echo from a client"})
                assert ran["output"] == "from a client\n", ran


async def inspect(*words):
    """Runs the official inspector once. Returns its exit code and what it prints."""
    ran = await asyncio.create_subprocess_exec(
        os.environ["MCP_INSPECTOR"], "--cli", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, said = await asyncio.wait_for(ran.communicate(), 120)
    return ran.returncode, out if ran.returncode == 0 else said


async def inspected(*words):
    """Lists the tools, calls one, and reads a resource by the inspector."""

    async def ask(*more):
        code, out = await inspect(*words, *more)
        assert code == 0, out
        return json.loads(out)

    tools = await ask("--method", "tools/list", "--strict")
    assert {tool["name"] for tool in tools["tools"]} == TOOLS, tools
    called = await ask("--method", "tools/call", "--tool-name", "terminal", "--tool-arg", "command=echo inspected")
    assert called["structuredContent"]["output"] == "inspected\n", called
    assert [row["uriTemplate"] for row in (await ask("--method", "resources/templates/list"))["resourceTemplates"]]


async def check_stdio_inspector():
    """The official inspector, over standard input and output."""
    await inspected(PROGRAM, "mcp")


async def check_http_inspector():
    """The official inspector, over streamable HTTP with a token in a header."""
    async with server() as url, Relay(url) as relay:
        token = ["--header", f"Authorization: Bearer {TOKEN}"]
        code, said = await inspect(relay.url, "--transport", "http", "--method", "tools/list")
        assert code != 0 and not any("mcp-session-id: " in request for request in relay.requests()), said
        await inspected(relay.url, "--transport", "http", *token)
        asked = relay.requests()
        assert asked and all(" /mcp http/1.1" in request.split("\r\n")[0] for request in asked), asked
        posts = [request for request in asked if request.startswith("post ") and f"bearer {TOKEN}" in request]
        assert all("text/event-stream" in request for request in posts), posts
        # Each has begun a session, and then made its request in it.
        sessions = set(re.findall(r"mcp-session-id: (\S+)", "".join(posts)))
        assert len(sessions) == 3, asked


NAME = sys.argv[1]
WITNESS = os.path.join(os.environ["CHECK_FOLDER"], "witness")
RUN = {"command": f"echo run >> '{WITNESS}'; echo done"}


def settings(**values):
    for key, value in values.items():
        subprocess.run([PROGRAM, "config", "set", f"approvals.{key}", value], check=True, capture_output=True)


def runs():
    """Returns how often the command was run."""
    with contextlib.suppress(FileNotFoundError):
        return len(open(WITNESS, encoding="utf-8").readlines())
    return 0


class Person:
    """Answers what is asked, one answer after the other, and remembers the questions."""

    def __init__(self, *answers):
        self.answers, self.questions, self.asked = list(answers), [], asyncio.Event()

    async def __call__(self, context, question):
        self.questions.append(question)
        self.asked.set()
        answer = self.answers.pop(0)
        return await answer() if callable(answer) else answer


def says(choice, **more):
    return ElicitResult(action="accept", content={"choice": choice, **more})


async def never():
    await asyncio.sleep(1000)


async def late():
    await asyncio.sleep(3)
    return says("once")


async def blocked(client, *reasons):
    before, value = runs(), await tool(client, "terminal", RUN)
    assert (value["status"], value["exit_code"], value["output"]) == ("blocked", -1, ""), value
    assert all(reason in value["error"] for reason in reasons), value
    assert "do not try the same in another way" in value["error"], value
    assert runs() == before, value


async def elicits(opened):
    """Asks a person behind a client. `opened` gives a client with such a person."""
    settings(tools="terminal")
    person = Person(
        says("once"), ElicitResult(action="decline"), ElicitResult(action="cancel"),
        says("deny", reason="not on a Friday"), says("always"), says("session"),
    )
    async with opened(person) as client:
        assert (await tool(client, "terminal", RUN))["output"] == "done\n"
        question = person.questions[0]
        assert f"    {RUN['command']}" in question.message and "`terminal`" in question.message, question
        choices = question.requested_schema["properties"]["choice"]["enum"]
        assert choices == ["once", "session", "deny"], question
        await blocked(client, "a person refused")
        await blocked(client, "a person refused")
        await blocked(client, "a person refused", "not on a Friday")
        await blocked(client, "a person refused")
        assert (runs(), len(person.questions)) == (1, 5), person.questions
        for _ in range(3):
            assert (await tool(client, "terminal", RUN))["output"] == "done\n"
        assert (await tool(client, "terminal", {"command": "echo other"}))["output"] == "other\n"
        assert (runs(), len(person.questions)) == (4, 6), person.questions
        # What needs nobody asks nobody.
        assert (await tool(client, "process", {"action": "list"}))["processes"] == []
        assert not waiting(), waiting()


async def elicits_late(opened):
    """An answer that comes too late is none."""
    settings(tools="terminal", timeout_s="1")
    person = Person(late, says("once"))
    async with opened(person) as client:
        await blocked(client, "nobody has answered")
        await asyncio.sleep(3)
        assert runs() == 0
        assert (await tool(client, "terminal", RUN))["output"] == "done\n"
        assert (runs(), len(person.questions)) == (1, 2), person.questions


def waiting():
    listed = subprocess.run([PROGRAM, "approvals", "list", "--json"], check=True, capture_output=True)
    return json.loads(listed.stdout)


async def pends(opened):
    """A client that cannot ask is told what a person has to run."""
    settings(tools="terminal")
    async with opened(None) as client:
        value = await tool(client, "terminal", RUN)
        command = f"hostel approvals allow {value['approval_id']}"
        assert value["status"] == "pending_approval" and f"`{command}`" in value["error"], value
        assert (value["output"], value["exit_code"], runs()) == ("", -1, 0), value
        (row,) = [row for row in waiting() if row["id"] == value["approval_id"]]
        assert row["command"] == RUN["command"], row
        subprocess.run([PROGRAM, *command.split()[1:]], check=True, capture_output=True)
        assert (await tool(client, "terminal", RUN))["output"] == "done\n"
        again = await tool(client, "terminal", RUN)
        assert (again["status"], runs()) == ("pending_approval", 1), again


def on_stdio(mode):
    return lambda person: stdio(mode=mode, elicitation_callback=person)


def on_http(url, mode):
    return lambda person: http(url, mode=mode, elicitation_callback=person)


async def both_over_http(check, **values):
    """Each way on a server of its own: clients without sessions share one with their task."""
    settings(**values)
    for mode in WAYS:
        with contextlib.suppress(FileNotFoundError):
            os.remove(WITNESS)
        async with server() as url:
            await check(on_http(url, mode))


async def check_stdio_elicit():
    await elicits(on_stdio(OLDER))


async def check_stdio_elicit_newest():
    await elicits(on_stdio(NEWEST))


async def check_http_elicit():
    await both_over_http(elicits, tools="terminal")


async def check_stdio_elicit_late():
    await elicits_late(on_stdio(OLDER))
    os.remove(WITNESS)
    await elicits_late(on_stdio(NEWEST))


async def check_http_elicit_late():
    await both_over_http(elicits_late, tools="terminal", timeout_s="1")


async def thinks(opened):
    """A person who needs longer than a client that is gone is given to come back."""

    async def at_length():
        await asyncio.sleep(7)
        return says("once")

    async with opened(Person(at_length)) as client:
        assert (await tool(client, "terminal", RUN))["output"] == "done\n"


async def check_http_elicit_slow():
    await both_over_http(thinks, tools="terminal")


async def check_elicit_none():
    """Clients without elicitation."""
    for mode in WAYS:
        with contextlib.suppress(FileNotFoundError):
            os.remove(WITNESS)
        await pends(on_stdio(mode))
    await both_over_http(pends, tools="terminal")


async def check_elicit_fails():
    """A client that says it can ask, and then cannot."""
    settings(tools="terminal")

    async def cannot():
        return ErrorData(code=-32603, message="there is no window")

    async with stdio(mode=OLDER, elicitation_callback=Person(cannot)) as client:
        value = await tool(client, "terminal", RUN)
        assert (value["status"], runs()) == ("pending_approval", 0), value


async def check_elicit_cancelled():
    """A call that is cancelled while it waits for a person is not made, and the question is withdrawn."""
    settings(tools="terminal")
    person = Person(never, says("once"))
    async with stdio(mode=OLDER, elicitation_callback=person) as client:
        task = asyncio.create_task(client.call_tool("terminal", RUN))
        await person.asked.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert (await tool(client, "terminal", RUN))["output"] == "done\n"
        assert (runs(), len(person.questions)) == (1, 2), person.questions
    assert not waiting(), waiting()


async def check_stdio_elicit_vanishes():
    """A client that goes away while it is asked has said no."""
    settings(tools="terminal")
    for mode in WAYS:
        person = Person(never)
        async with contextlib.AsyncExitStack() as stack:
            client = await stack.enter_async_context(stdio(mode=mode, elicitation_callback=person))
            task = asyncio.create_task(client.call_tool("terminal", RUN))
            await person.asked.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        assert (runs(), waiting()) == (0, [])
    # Without a word, and with the yes on its way when nobody reads the answer any more.
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "mcp", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    first = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "x", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "terminal", "arguments": RUN}},
    ]
    process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    await process.stdin.drain()
    while json.loads(await asyncio.wait_for(process.stdout.readline(), PATIENCE)).get("method") != "elicitation/create":
        pass
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    assert (runs(), waiting()) == (0, [])


async def check_http_elicit_vanishes():
    settings(tools="terminal")
    for mode in WAYS:
        async with server() as url:
            person = Person(never)
            async with http(url, mode=mode, elicitation_callback=person) as client:
                task = asyncio.create_task(client.call_tool("terminal", RUN))
                await person.asked.wait()
                task.cancel()
                with contextlib.suppress(BaseException):
                    await task
            # Others are not held up.
            other = Person(says("once"))
            async with http(url, mode=mode, elicitation_callback=other) as client:
                assert (await tool(client, "terminal", {"command": "echo on"}))["output"] == "on\n"
        assert (runs(), waiting()) == (0, [])


async def main():
    places = [globals(), *(vars(module) for module in (background, malformed, resume))]
    (check,) = {place[f"check_{NAME}"] for place in places if f"check_{NAME}" in place}
    await asyncio.wait_for(check(), 150)
    print("ok")


asyncio.run(main())
