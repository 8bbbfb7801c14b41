"""The tools of Hostel, for a script that `execute_code` runs.

Each function returns the tool's result as a dict. A call that failed raises nothing: its result has a key `error`.
"""
import json
import os
import shlex
import socket
import time

__all__ = [
    "terminal",
    "read_file",
    "write_file",
    "search_files",
    "patch",
    "json_parse",
    "shell_quote",
    "retry",
]

_CALLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "calls")


def _call(tool, arguments):
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        request = tool + "\n" + json.dumps(given, default=os.fspath)
    except (TypeError, ValueError) as error:
        return {"error": "the arguments of `%s` cannot be written as JSON: %s" % (tool, error)}
    # A connection for each call: threads and processes of the script may make calls at once.
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(_CALLS)
            connection.sendall(request.encode("utf-8"))
            connection.shutdown(socket.SHUT_WR)
            answer = bytearray()
            while True:
                data = connection.recv(65536)
                if not data:
                    break
                answer += data
        return json.loads(answer.decode("utf-8"))
    except (OSError, ValueError) as error:
        return {"error": "`%s` was not answered, as the script is at its end: %s" % (tool, error)}


def terminal(command, timeout=None, workdir=None):
    """Runs a shell command and waits for it. Returns `output`, `exit_code`, `error` and more."""
    return _call("terminal", {"command": command, "timeout": timeout, "workdir": workdir})


def read_file(path, offset=1, limit=500):
    """Reads lines of a text file. Returns `content` (lines as `N|text`), `total_lines` and more."""
    return _call("read_file", {"path": path, "offset": offset, "limit": limit})


def write_file(path, content):
    """Writes a file, and replaces what it held. Returns `bytes_written` and more."""
    return _call("write_file", {"path": path, "content": content})


def search_files(
    pattern,
    target="content",
    path=".",
    file_glob=None,
    limit=50,
    offset=0,
    output_mode="content",
    context=0,
):
    """Searches what files hold, or with target="files" their names. Returns `matches` or `files`, and more."""
    arguments = {
        "pattern": pattern,
        "target": target,
        "path": path,
        "file_glob": file_glob,
        "limit": limit,
        "offset": offset,
        "output_mode": output_mode,
        "context": context,
    }
    return _call("search_files", arguments)


def patch(path=None, old_string=None, new_string=None, replace_all=False, mode="replace", patch=None):
    """Replaces text in a file, or with mode="patch" applies a patch to several. Returns `success`, `diff` and more."""
    arguments = {
        "mode": mode,
        "path": path,
        "old_string": old_string,
        "new_string": new_string,
        "replace_all": replace_all,
        "patch": patch,
    }
    return _call("patch", arguments)


def json_parse(text):
    """Reads JSON that may hold control characters within strings, as what programs print often does."""
    return json.loads(text, strict=False)


def shell_quote(text):
    """Quotes `text` so that a shell reads exactly that as one word."""
    return shlex.quote(text)


def retry(fn, max_attempts=3, delay=2):
    """Calls `fn` until it raises nothing, `max_attempts` times at the most, and returns what it returns.

    Waits `delay` seconds after the first failure, and twice as long after each further one.
    """
    for attempt in range(max_attempts):
        try:
            return fn()
        except Exception:
            if attempt + 1 >= max_attempts:
                raise
            time.sleep(delay * 2**attempt)
