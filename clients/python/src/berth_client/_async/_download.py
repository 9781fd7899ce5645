import hashlib
from types import TracebackType
from typing import Self

from .._deadline import Deadline
from .._errors import BerthError, ContentDamaged
from .._retry import is_transient
from ._calls import AsyncCalls
from ._streaming import AsyncStreaming


class AsyncDownload:
    """The content of an artifact in pieces. After a lost connection it goes on where it was."""

    def __init__(self, calls: AsyncCalls, path: str, size: int, digest: str, deadline: Deadline) -> None:
        self._calls = calls
        self._path = path
        self._size = size
        self._digest = digest
        self._deadline = deadline
        self._hash = hashlib.sha256()
        self._given = 0
        self._skip = 0
        self._etag: str | None = None
        self._failures: list[BerthError] = []
        self._open: AsyncStreaming | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while self._given < self._size:
            piece = await self._next()
            if piece:
                self._given += len(piece)
                self._hash.update(piece)
                return piece
        await self.aclose()
        if self._given != self._size or self._hash.hexdigest() != self._digest:
            raise ContentDamaged(f"GET {self._path}: what came has not the SHA-256 {self._digest}; read it again")
        raise StopAsyncIteration

    async def _next(self) -> bytes:
        """Returns further bytes; none where the connection was lost."""
        what = f"GET {self._path}"
        if self._open is None:
            self._open = await self._calls.repeat(self._opened, what, self._deadline, self._failures)
        try:
            piece = await self._open.next(self._deadline, what)
        except BerthError as error:
            await self.aclose()
            if not is_transient(error):
                raise
            self._failures.append(error)
            return b""
        if piece is None:
            # An answer that is too short for its artifact.
            await self.aclose()
            raise ContentDamaged(f"{what}: {self._given} bytes came of {self._size}; read it again")
        skipped, self._skip = min(self._skip, len(piece)), max(0, self._skip - len(piece))
        piece = piece[skipped:][: self._size - self._given + 1]
        return piece

    async def _opened(self, token: str) -> AsyncStreaming:
        headers = {"authorization": f"Bearer {token}", "accept": "*/*"}
        if self._given > 0:
            headers["range"] = f"bytes={self._given}-"
            if self._etag is not None:
                headers["if-range"] = self._etag
        streaming = await AsyncStreaming.open(self._calls.http, self._path, headers, self._calls.timing.answer)
        # A server or proxy that sends the whole again has the beginning, which the digest includes, once more.
        self._skip = self._given if streaming.status == 200 else 0
        self._etag = streaming.headers.get("etag")
        return streaming

    async def aclose(self) -> None:
        """Ends the download."""
        streaming, self._open = self._open, None
        if streaming is not None:
            await streaming.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
