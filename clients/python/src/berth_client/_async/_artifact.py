import errno
import os
from typing import TYPE_CHECKING

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

        Raises ContentDamaged after the last piece where the content does not have the digest, DeadlineExceeded where the server does not
        answer within the deadline.
        """
        return AsyncDownload(self._calls, self._path, self.bytes, self.digest, deadline)

    async def read(self, *, deadline: float | None = None) -> bytes:
        """Returns the content, which is at most 16 MiB."""
        async with self.stream(deadline=deadline) as pieces:
            return b"".join([piece async for piece in pieces])

    async def save(self, path: "str | os.PathLike[str]", *, deadline: float | None = None) -> None:
        """Writes the content to a file, which gets its name when it is whole. A file of this name is replaced.

        Whatever ends the call before leaves no partial file. Raises OSError, and as `stream` does.
        """
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "it is a folder: give the path of the file", os.fspath(path))
        with PartialFile(path, self.executable) as file:
            async with self.stream(deadline=deadline) as pieces:
                async for piece in pieces:
                    file.write(piece)
            file.finish()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {self.bytes} bytes>"
