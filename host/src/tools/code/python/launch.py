"""Runs a script as a child of its own, and speaks of it with Hostel.

Hostel reads frames on our standard output (`frames.rs` says what they are) and sends answers to our standard input. Whatever
ends one of the two ends the script. `token`, `name` and `parts` are set by whoever reads this text.
"""
import binascii
import fcntl
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

# Three bytes are four letters; with token, kind and number a line stays below 4096 bytes, which a pipe takes whole.
PIECE = 2976
# The largest call.
LARGEST = 8 * 1024 * 1024
TOO_LARGE = b'{"error": "the call is larger than 8 MiB: write large files in pieces"}'
# Between SIGTERM and SIGKILL, in seconds.
GRACE = 0.5
# After the end of the script, in seconds: what its own children still print is waited for.
DRAIN_IDLE = 0.1
DRAIN_LIMIT = 1.0
# A path of a socket has no more room.
LONGEST_PATH = 90


class Launcher:
    def __init__(self, token, rule, tools, runner, script):
        self.token = token
        self.rule = [line.split() for line in rule.decode("ascii").splitlines()]
        self.stop_asked = False
        self.kill_at = None
        self.waiting = {}
        self.calls = 0
        self.line = bytearray()
        self.selector = selectors.PollSelector()
        self.folder = None
        try:
            self.folder = private_folder()
            self.fill(tools, runner, script)
            self.listener = self.listen()
            self.wake = self.catch_signals()
            self.streams = {}
            self.child = self.start()
        except OSError as error:
            self.remove()
            self.say(b"f", str(error).encode("utf-8", "replace"))
            os._exit(1)

    def fill(self, tools, runner, script):
        for name in ("lib", "code"):
            os.mkdir(os.path.join(self.folder, name), 0o700)
        alias = b"import sys\nimport hostel_tools\nsys.modules[__name__] = hostel_tools\n"
        files = (
            ("lib/hostel_tools.py", tools),
            ("lib/hermes_tools.py", alias),
            ("code/script.py", script),
            ("run.py", runner),
        )
        for name, content in files:
            path = os.path.join(self.folder, name)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)

    def listen(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(os.path.join(self.folder, "lib", "calls"))
        listener.listen(64)
        listener.setblocking(False)
        self.selector.register(listener, selectors.EVENT_READ, self.accept)
        return listener

    def catch_signals(self):
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.ask_to_stop)
        self.selector.register(reader, selectors.EVENT_READ, lambda key: os.read(reader, 512))
        return reader

    def ask_to_stop(self, number=None, frame=None):
        self.stop_asked = True

    def start(self):
        ends = []
        for kind in (b"o", b"e"):
            reader, writer = os.pipe()
            self.streams[reader] = kind
            ends.append(writer)
        child = subprocess.Popen(
            [sys.executable or "python3", "-u", os.path.join(self.folder, "run.py")],
            stdin=subprocess.DEVNULL,
            stdout=ends[0],
            stderr=ends[1],
            # Not a session of its own: what leaves that of the call is harder to find for whoever must end it.
            preexec_fn=os.setpgrp,
            env={name: value for name, value in os.environ.items() if self.keeps(name)},
        )
        for end in ends:
            os.close(end)
        for reader in self.streams:
            self.selector.register(reader, selectors.EVENT_READ, self.pass_on)
        self.selector.register(0, selectors.EVENT_READ, self.hear)
        return child

    def keeps(self, name):
        """Whether the script sees a variable."""
        hidden, prefixes, exact = self.rule
        if any(part in name.upper() for part in hidden):
            return False
        return name in exact or name.startswith(tuple(prefixes))

    def say(self, kind, data=b"", number=0):
        lines = []
        for at in range(0, max(len(data), 1), PIECE):
            more = b"+" if kind == b"c" and at + PIECE < len(data) else b""
            text = binascii.b2a_base64(data[at : at + PIECE], newline=False)
            lines.append(b"%s %s %d%s %s\n" % (self.token, kind, number, more, text))
        rest = memoryview(b"".join(lines))
        while rest:
            rest = rest[os.write(1, rest) :]

    def pass_on(self, key):
        data = os.read(key.fd, 65536)
        if data:
            self.say(self.streams[key.fd], data)
        else:
            self.selector.unregister(key.fd)
            del self.streams[key.fd]
            os.close(key.fd)
        return len(data)

    def accept(self, key):
        try:
            connection = key.fileobj.accept()[0]
        except OSError:
            return
        connection.setblocking(False)
        received = bytearray()
        self.selector.register(connection, selectors.EVENT_READ, lambda key: self.receive(key.fileobj, received))

    def receive(self, connection, received):
        try:
            data = connection.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            self.drop(connection)
            return
        if data:
            # One that is too large is read to its end all the same, since its sender listens only then.
            received += data[: LARGEST + 1 - len(received)]
        elif len(received) > LARGEST:
            self.selector.modify(connection, selectors.EVENT_WRITE, self.answering(TOO_LARGE))
        else:
            self.selector.unregister(connection)
            self.calls += 1
            self.waiting[b"%d" % self.calls] = connection
            self.say(b"c", bytes(received), self.calls)

    def answering(self, answer):
        rest = [memoryview(answer)]

        def send(key):
            try:
                rest[0] = rest[0][key.fileobj.send(rest[0]) :]
            except BlockingIOError:
                return
            except OSError:
                rest[0] = b""
            if not rest[0]:
                self.drop(key.fileobj)

        return send

    def drop(self, connection):
        self.selector.unregister(connection)
        connection.close()

    def hear(self, key):
        data = os.read(0, 65536)
        if not data:
            self.selector.unregister(0)
            self.ask_to_stop()
        self.line += data
        if b"\n" in data:
            lines = bytes(self.line).split(b"\n")
            self.line = bytearray(lines.pop())
            for line in lines:
                self.answer(line.split(b" "))

    def answer(self, words):
        # The token, `a`, the call, whether it failed, the answer.
        if len(words) != 5 or words[0] != self.token or words[1] != b"a":
            return
        connection = self.waiting.pop(words[2], None)
        if connection is not None:
            answer = binascii.a2b_base64(words[4])
            self.selector.register(connection, selectors.EVENT_WRITE, self.answering(answer))

    def signal_group(self, number):
        try:
            os.killpg(self.child.pid, number)
        except OSError:
            pass

    def ended(self):
        # It stays a zombie, so that its number is still that of its group.
        return os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def attend(self):
        while not self.ended():
            left = None
            if self.stop_asked:
                now = time.monotonic()
                if self.kill_at is None:
                    self.kill_at = now + GRACE
                    self.signal_group(signal.SIGTERM)
                    self.signal_group(signal.SIGCONT)
                elif now >= self.kill_at:
                    self.signal_group(signal.SIGKILL)
                    self.kill_at = now + GRACE
                left = max(0, self.kill_at - now)
            for key, _ in self.selector.select(left):
                key.data(key)
        if self.stop_asked:
            self.signal_group(signal.SIGKILL)
        code = self.child.wait()
        return 128 - code if code < 0 else code

    def drain(self):
        """Passes on what stands in the pipes, and for a short while what comes after it."""
        selector = selectors.PollSelector()
        owed = 0
        for reader in self.streams:
            selector.register(reader, selectors.EVENT_READ)
            owed += struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"\0\0\0\0"))[0]
        self.selector, until = selector, None
        while self.streams:
            ready = selector.select(DRAIN_IDLE)
            if not ready:
                break
            for key, _ in ready:
                owed -= self.pass_on(key)
            if owed <= 0:
                until = until or time.monotonic() + DRAIN_LIMIT
                if time.monotonic() >= until:
                    break

    def leave_readers(self):
        """Lets somebody read what children in the background will still print, so that they do not die of it."""
        for reader in self.streams:
            try:
                subprocess.Popen(
                    ["cat"],
                    stdin=reader,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    # No command of anybody's.
                    env=dict(os.environ, HOSTEL_CALL="reader"),
                    start_new_session=True,
                )
            except OSError:
                pass

    def remove(self):
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def run(self):
        code = None
        try:
            self.say(b"b")
            code = self.attend()
            self.drain()
            if not self.stop_asked:
                self.leave_readers()
        finally:
            if code is None:
                # Nobody reads what we say.
                self.signal_group(signal.SIGKILL)
            self.remove()
        self.say(b"x", b"%d%s" % (code, b" stopped" if self.stop_asked else b""))


def private_folder():
    place, own = tempfile.gettempdir(), os.fsdecode(name)  # noqa: F821
    if len(os.fsencode(os.path.join(place, own))) > LONGEST_PATH:
        place = "/tmp"
    folder = os.path.join(place, own)
    os.mkdir(folder, 0o700)
    return folder


try:
    Launcher(token, *parts).run()  # noqa: F821
except OSError:
    os._exit(1)
# No destructors: what still runs is meant to.
os._exit(0)
