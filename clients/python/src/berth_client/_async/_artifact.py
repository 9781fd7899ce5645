import errno
import os
from typing import TYPE_CHECKING

from .._deadline import Deadline
from .._errors import ContentDamaged
from .._partial import PartialFile
from ._calls import AsyncCalls
from ._download import AsyncDownload

if TYPE_CHECKING:
    from .. import wire


class AsyncArtifact:
    """A file that a turn has left."""

    def __init__(self, calls: AsyncCalls, path: str, item: "wire.Artifact") -> None:
        self._calls = calls
        self._path = path
        self.name = item["name"]
        """Path in the agent's output folder, with slashes. Check it before it becomes a path of yours."""
        self.bytes = item["bytes"]
        self.digest = item["digest"]
        """SHA-256 of the content, in hex."""
        self.executable = item.get("executable", False)

    def stream(self, *, deadline: float | None = None) -> "AsyncDownload":
        """Returns the content as an iterator of pieces, to be used with `async with`. A connection that is lost is resumed.

        Raises ContentDamaged after the last piece where the content does not have the digest, DeadlineExceeded where not all of it has been
        read within the deadline.
        """
        return self._stream(self._calls.deadline(deadline))

    async def read(self, *, deadline: float | None = None) -> bytes:
        """Returns the content, which is at most 16 MiB. A content that is damaged is read once more."""
        until = self._calls.deadline(deadline)
        try:
            return await self._read(until)
        except ContentDamaged:
            return await self._read(until)

    async def save(self, path: "str | os.PathLike[str]", *, deadline: float | None = None) -> None:
        """Writes the content to a file, which gets its name when it is whole. A file of this name is replaced.

        A content that is damaged is read once more. Whatever ends the call before leaves no partial file. Raises OSError, and as `stream`
        does.
        """
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "it is a folder: give the path of the file", os.fspath(path))
        until = self._calls.deadline(deadline)
        with PartialFile(path, self.executable) as file:
            try:
                await self._write(file, until)
            except ContentDamaged:
                file.clear()
                await self._write(file, until)
            file.finish()

    def _stream(self, until: Deadline) -> "AsyncDownload":
        return AsyncDownload(self._calls, self._path, self.bytes, self.digest, until)

    async def _read(self, until: Deadline) -> bytes:
        async with self._stream(until) as pieces:
            return b"".join([piece async for piece in pieces])

    async def _write(self, file: PartialFile, until: Deadline) -> None:
        async with self._stream(until) as pieces:
            async for piece in pieces:
                file.write(piece)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {self.bytes} bytes>"
