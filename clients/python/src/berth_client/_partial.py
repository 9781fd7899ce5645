import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self


class PartialFile:
    """A file that gets its name when it is whole. It is removed where its block ends before `finish`."""

    def __init__(self, path: "str | os.PathLike[str]", executable: bool) -> None:
        self._path = Path(path)
        self._partial = self._path.with_name(f".{self._path.name[:200]}.{secrets.token_hex(4)}.partial")
        self._mode = 0o777 if executable else 0o666
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        # The mode is cut by the umask, as that of any new file.
        self._file = os.fdopen(os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._mode), "wb")
        return self

    def write(self, piece: bytes) -> None:
        assert self._file is not None
        self._file.write(piece)

    def clear(self) -> None:
        """Begins anew."""
        assert self._file is not None
        self._file.seek(0)
        self._file.truncate()

    def finish(self) -> None:
        assert self._file is not None
        self._file.flush()
        # After a power failure the name must not be that of an empty file.
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._partial, self._path)
        self._file = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None:
            return
        self._file.close()
        self._partial.unlink(missing_ok=True)
