from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Self

import httpx2

from .._answer import Answer, error_of
from .._deadline import Deadline
from .._errors import ConnectionLost
from ._http import AsyncHttp, connection_lost
from ._io import interrupt, pieces_of

_MOST_OF_ERROR = 64 * 1024
"""Bytes that are read of a refusal."""


class AsyncStreaming:
    """An answer of success whose content is read piece by piece."""

    def __init__(
        self,
        response: httpx2.Response,
        answer: Answer,
        pieces: AsyncGenerator[bytes, None],
        resources: AsyncExitStack,
    ) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self._request = answer.request
        self._response = response
        self._pieces = pieces
        self._resources = resources

    @classmethod
    async def open(cls, http: AsyncHttp, target: str, headers: Mapping[str, str], silence: float) -> Self:
        """Sends a GET. Raises what a refusal stands for, or ConnectionLost."""
        async with AsyncExitStack() as resources:
            response, answer = await resources.enter_async_context(http.stream("GET", target, headers, None, silence))
            pieces = await resources.enter_async_context(aclosing(pieces_of(response)))
            if response.status_code not in (200, 206):
                body = b""
                async for piece in pieces:
                    body += piece
                    if len(body) > _MOST_OF_ERROR:
                        break
                raise error_of(Answer(answer.request, answer.status, answer.headers, body))
            return cls(response, answer, pieces, resources.pop_all())

    async def next(self, deadline: Deadline | None = None, what: str = "") -> bytes | None:
        """Returns the next piece; None at the end. Raises ConnectionLost, or DeadlineExceeded."""
        if deadline is not None and deadline.left() == 0:
            raise deadline.exceeded(what)
        try:
            return await anext(self._pieces, None)
        except httpx2.TransportError as error:
            raise connection_lost(error, self._request, sent=True) from error
        except httpx2.StreamError as error:
            # Closed by another task or thread meanwhile.
            raise ConnectionLost(f"{self._request}: it was closed", sent=True) from error

    async def rest(self, deadline: Deadline, what: str) -> AsyncGenerator[bytes, None]:
        """Yields the pieces to the end."""
        while (piece := await self.next(deadline, what)) is not None:
            yield piece

    async def interrupt(self) -> None:
        """Has a task or thread that waits in `next` return."""
        await interrupt(self._response)

    async def aclose(self) -> None:
        await self._resources.aclose()
