"""Stands between a client and a server over HTTP: hears what the client asks for, and cuts connections."""

import asyncio
import urllib.parse


class Relay:
    def __init__(self, url):
        self._to = urllib.parse.urlsplit(url)
        self._open, self._heard, self._tasks = set(), [], set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}{self._to.path}"
        return self

    async def __aexit__(self, *error):
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        there, back = await asyncio.open_connection(self._to.hostname, self._to.port)
        heard = bytearray()
        self._heard.append(heard)
        self._open |= {writer, back}
        await asyncio.gather(self._pass(reader, back, heard), self._pass(there, writer, bytearray()), return_exceptions=True)
        self._open -= {writer, back}

    async def _pass(self, reader, writer, heard):
        try:
            while piece := await reader.read(65536):
                heard += piece
                writer.write(piece)
                await writer.drain()
        finally:
            writer.close()

    def cut(self):
        """Ends all connections at once, without a word."""
        for writer in self._open:
            writer.transport.abort()

    def requests(self):
        """Returns the request lines and headers, in small letters, of all that was asked for."""
        found = []
        for heard in self._heard:
            for head in bytes(heard).decode("utf-8", "replace").split("\r\n\r\n"):
                for method in ("POST ", "GET ", "DELETE "):
                    if (at := head.find(method)) >= 0 and " HTTP/1.1" in head[at:].split("\r\n")[0]:
                        found.append(head[at:].lower())
                        break
        return found
