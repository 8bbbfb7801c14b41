"""A client of the SDK's first version that looks like one of its second."""

import asyncio
import contextlib
import re

import anyio
from mcp import ClientSession, types
from pydantic import AnyUrl, BaseModel


class Snake:
    """A model of the first version by the names of the second."""

    def __init__(self, model):
        self._model = model

    def __getattr__(self, name):
        camel = re.sub(r"_(\w)", lambda letter: letter[1].upper(), name)
        return snake(getattr(self._model, camel))

    def __repr__(self):
        return repr(self._model)


def snake(value):
    if isinstance(value, BaseModel):
        return Snake(value)
    return [snake(item) for item in value] if isinstance(value, list) else value


class Client:
    def __init__(self, transport, mode=None, elicitation_callback=None):
        self._transport, self._stack = transport, contextlib.AsyncExitStack()
        self._asked = elicitation_callback

    async def __aenter__(self):
        asked = self._asked
        answers = asked and (lambda context, question: asked(context, snake(question)))
        read, write, *_ = await self._stack.enter_async_context(self._transport)
        session = ClientSession(read, write, elicitation_callback=answers)
        self._session = await self._stack.enter_async_context(session)
        begun = snake(await self._session.initialize())
        self.instructions, self.server_capabilities = begun.instructions, begun.capabilities
        return self

    async def __aexit__(self, *error):
        return await self._stack.__aexit__(*error)

    async def list_tools(self):
        return snake(await self._session.list_tools())

    async def list_resources(self):
        return snake(await self._session.list_resources())

    async def read_resource(self, uri):
        return snake(await self._session.read_resource(AnyUrl(str(uri))))

    async def call_tool(self, name, arguments, progress_callback=None):
        # The first version takes nothing back by itself.
        number = self._session._request_id
        try:
            return snake(await self._session.call_tool(name, arguments, progress_callback=progress_callback))
        except asyncio.CancelledError:
            taken_back = types.CancelledNotification(params=types.CancelledNotificationParams(requestId=number))
            with anyio.CancelScope(shield=True):
                await self._session.send_notification(types.ClientNotification(taken_back))
            raise
