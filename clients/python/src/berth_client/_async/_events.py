import time
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from .. import _json, problems
from .._errors import ConnectionLost, ReleaseMismatch
from .._event import Event, SessionEvent
from .._retry import pause
from .._sse import Decoder, Raw
from .._version import VERSION
from ._calls import AsyncCalls
from ._io import sleep
from ._streaming import AsyncStreaming

_LASTED = 10.0
"""Seconds after which a stream that ends was no failure."""
EVERYTHING = "0.0.0.0"
"""Id before all that is kept."""
_TERMINAL = ("Succeeded", "Failed", "Cancelled", "TimedOut")


class AsyncEvents:
    """Events of a session or turn, to be used with `async with`. A stream that is lost goes on after the last event.

    A reader may take its time: the server ends a stream that nobody reads for 30 seconds, which is then begun again.
    """

    def __init__(
        self,
        calls: AsyncCalls,
        target: str,
        after: str | None,
        uid: str | None,
        *,
        is_last: Callable[[Any], bool],
        is_of_one: bool = True,
        is_shown: Callable[[Any], bool] = lambda event: True,
        has_ended: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._calls = calls
        self._target = target
        self._after = after
        self._uid = uid
        self._is_of_one = is_of_one
        self._is_last = is_last
        self._is_shown = is_shown
        # A stream without `after` leaves out turns that have ended: this is asked once it is open.
        self._has_ended = has_ended if after is None else None
        self._open: AsyncStreaming | None = None
        self._opened_at = 0.0
        self._decoder = Decoder()
        self._ready: deque[Raw] = deque()
        self._failures = 0
        self._ended = False

    @property
    def last_id(self) -> str | None:
        """Id of the last event that was returned or left out; `events(after=…)` goes on there."""
        return self._after

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "SessionEvent":
        """Returns the next event. Raises a refusal, or DeadlineExceeded where no connection is made again within the client's deadline."""
        while not self._ended:
            while self._ready and not self._ended:
                event = self._event(self._ready.popleft())
                self._after = event.id or self._after
                self._ended = self._is_last(event)
                if self._is_shown(event):
                    shown: SessionEvent = event
                    return shown
            if not self._ended:
                await self._read()
        await self._close()
        raise StopAsyncIteration

    def _event(self, raw: Raw) -> Any:
        try:
            event = Event(raw.id or "", raw.type, _json.parse(raw.data))
            tells_session = event.type in ("session", "deleted") and "turn" not in event.data
            uid = event.data["uid"] if tells_session and self._is_of_one else self._uid
        except (LookupError, TypeError, ValueError) as error:
            raise ReleaseMismatch(
                f"GET {self._target}: an event of type {raw.type} cannot be read. The server is of release "
                f"{self._calls.http.release or 'unknown'}, berth-client of release {VERSION}: take a client of the server's release"
            ) from error
        if self._uid is not None and uid != self._uid:
            raise problems.UIDMismatch(
                "UIDMismatch",
                f"the session has the UID {uid}, and {self._uid} was followed, which is deleted.",
                status=409,
            )
        self._uid = uid
        return event

    async def _read(self) -> None:
        """Takes further bytes of the stream, which is opened where it is not."""
        if self._open is None:
            deadline = self._calls.deadline(None)
            if self._failures:
                await sleep(min(pause(None, self._failures, self._calls.timing), deadline.left()))
            self._open = await self._calls.repeat(self._begin, f"GET {self._target}", deadline)
            if self._ended:
                return
            has_ended, self._has_ended = self._has_ended, None
            if has_ended is not None and await has_ended():
                self._after = EVERYTHING
                await self._close()
                return
        try:
            piece = await self._open.next()
            if piece is not None:
                self._ready.extend(self._decoder.feed(piece))
                return
        except ConnectionLost:
            pass
        # Streams that end at once are begun ever more slowly.
        self._failures = 1 if time.monotonic() - self._opened_at > _LASTED else self._failures + 1
        await self._close()

    async def _begin(self, token: str) -> AsyncStreaming:
        headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
        if self._after is not None:
            headers["last-event-id"] = self._after
        streaming = await AsyncStreaming.open(
            self._calls.http, self._target, headers, self._calls.timing.stream_silence
        )
        self._decoder = Decoder()
        self._opened_at = time.monotonic()
        return streaming

    async def _close(self) -> None:
        streaming, self._open = self._open, None
        if streaming is not None:
            await streaming.aclose()

    async def aclose(self) -> None:
        """Ends the iteration, also that of another task or thread which waits for the next event."""
        self._ended = True
        streaming = self._open
        if streaming is not None:
            await streaming.interrupt()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        await self._close()


def session_is_deleted(event: Any) -> bool:
    return event.type == "deleted" and "turn" not in event.data


def end_of_turn(turn: str) -> Callable[[Any], bool]:
    def is_last(event: Any) -> bool:
        if event.type == "deleted":
            return bool(event.data.get("turn", turn) == turn)
        return event.type == "turn" and bool(event.data.get("turn") == turn and event.data.get("phase") in _TERMINAL)

    return is_last


def of_turn(turn: str) -> Callable[[Any], bool]:
    """Chooses the events of a turn. Lines do not say whose they are: they count from when the turn is told to run."""
    running = False

    def is_shown(event: Any) -> bool:
        nonlocal running
        if event.type in ("session", "dropped"):
            return False
        if event.type == "log":
            return running
        mine = bool(event.data.get("turn", turn) == turn)
        if event.type in ("turn", "agent"):
            running = mine
        return mine

    return is_shown
