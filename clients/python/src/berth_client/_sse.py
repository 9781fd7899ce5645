"""Decoder of server-sent events. https://html.spec.whatwg.org/multipage/server-sent-events.html"""

from dataclasses import dataclass, field

from ._errors import OutputTooLarge

_MOST = 16 * 1024 * 1024
"""Bytes of the largest event that is taken."""


@dataclass(frozen=True)
class Raw:
    id: str | None
    type: str
    data: str


@dataclass
class Decoder:
    """Takes the bytes as they come, cut anywhere."""

    _rest: bytearray = field(default_factory=bytearray)
    _id: str | None = None
    _type: str = "message"
    _data: list[str] = field(default_factory=list)
    _size: int = 0

    def feed(self, piece: bytes) -> list[Raw]:
        """Returns the events that are complete now. Raises OutputTooLarge."""
        self._rest += piece
        *lines, rest = self._rest.split(b"\n")
        self._rest = rest
        events: list[Raw] = []
        for line in lines:
            self._line(line.removesuffix(b"\r").decode("utf-8", "replace"), events)
        if self._size + len(self._rest) > _MOST:
            raise OutputTooLarge(f"an event has more than {_MOST} bytes")
        return events

    def _line(self, line: str, events: list[Raw]) -> None:
        if line == "":
            if self._data:
                events.append(Raw(self._id, self._type, "\n".join(self._data)))
            self._type, self._data, self._size = "message", [], 0
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        self._size += len(line)
        if name == "id":
            self._id = value
        elif name == "event":
            self._type = value
        elif name == "data":
            self._data.append(value)
