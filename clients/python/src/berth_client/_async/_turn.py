import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from .. import _json, problems, wire
from .._answer import Answer, refuse_other
from .._deadline import Deadline
from .._errors import TURN_ERRORS, DeadlineExceeded
from .._paths import query
from ._approval import AsyncApproval
from ._artifact import AsyncArtifact
from ._calls import AsyncCalls
from ._events import AsyncEvents, end_of_turn, of_turn
from ._result import AsyncResult
from ._streaming import AsyncStreaming

if TYPE_CHECKING:
    from ._session import AsyncSession

TERMINAL = frozenset({"Succeeded", "Failed", "Cancelled", "TimedOut"})
OnApproval = Callable[[AsyncApproval], Awaitable[None]]
"""What is done with a question."""
_MOST_WAIT = 60.0
"""Seconds that the server waits at most."""


class AsyncTurn:
    """A turn of a session. Making one sends no request."""

    def __init__(self, calls: AsyncCalls, session: "AsyncSession", name: str, data: "wire.Turn | None" = None) -> None:
        self._calls = calls
        self.session = session
        self.name = name
        self.object: wire.Turn | None = data
        """The turn as it was read last."""

    @property
    def uid(self) -> str | None:
        """UID of the turn, once it was read: calls then leave another turn that has come under the name alone."""
        return self.object["metadata"]["uid"] if self.object else None

    @property
    def phase(self) -> str | None:
        """Phase when it was read last."""
        return self.object.get("status", {}).get("phase", "Queued") if self.object else None

    def _path(self, *parts: str) -> str:
        return self.session._path("turns", self.name, *parts)

    async def get(self, *, deadline: float | None = None) -> "wire.Turn":
        """Reads the turn."""
        return self._read(await self._calls.get(self._path(), self._calls.deadline(deadline)))

    async def wait(self, *, deadline: float | None = None) -> "wire.Turn":
        """Waits until the turn has ended or asks for an approval. Raises DeadlineExceeded; the turn goes on then."""
        return self._read(await self._until(self._calls.deadline(deadline), stops_at_question=True))

    async def result(self, *, on_approval: "OnApproval | None" = None, deadline: float | None = None) -> "AsyncResult":
        """Waits for the end of the turn, also while it waits for an approval, and returns what it has returned.

        `on_approval` is called with each question. Without it others decide.
        Raises TurnFailed, TurnTimedOut, TurnCancelled, or DeadlineExceeded; the turn goes on then.
        """
        until = self._calls.deadline(deadline)
        answer = await self._until(until, on_approval)
        return await self._result(answer, _json.member(answer.text(), "status", "output"), until)

    async def _result(self, answer: Answer, output: str | None, deadline: Deadline) -> "AsyncResult":
        """Returns the result of this turn, which has ended; raises where it did not succeed. `output`: as it is known already."""
        data = self.object
        assert data is not None
        if self.phase in TURN_ERRORS:
            raise TURN_ERRORS[self.phase](data)
        if output is None:
            try:
                output = (await self._calls.get(self._path("output"), deadline)).text()
            except problems.NoOutput:
                output = "null"
        text = output
        return answer.read(lambda: AsyncResult(self.session, self, text))

    async def _until(
        self, deadline: Deadline, on_approval: "OnApproval | None" = None, *, stops_at_question: bool = False
    ) -> Answer:
        """Asks until the turn has ended, or asks for an approval, and keeps it in `object`."""
        early = 0
        question: AsyncApproval | None = None
        try:
            while True:
                wait = min(self._calls.timing.wait, _MOST_WAIT, deadline.left())
                asked = time.monotonic()
                # A wait ends at a question, unless it names it.
                known = question.request_id if question else None
                target = self._path() + query(wait=f"{max(1, int(wait * 1000))}ms", requestId=known)
                answer = await self._calls.get(target, deadline, wait)
                self._read(answer)
                question = self.asks()
                if self.phase in TERMINAL or (stops_at_question and question):
                    return answer
                if on_approval is not None and question is not None and question.request_id != known:
                    await on_approval(question)
                # The server answers sooner where it stops, or where the turn asks something new.
                early = await self._calls.pause_if_early(early, asked, wait, deadline)
                if deadline.left() == 0:
                    raise deadline.exceeded(f"turn {self.name} is {self.phase}")
        except DeadlineExceeded as error:
            error.turn = self
            raise

    @asynccontextmanager
    async def stream_output(
        self, *, deadline: float | None = None
    ) -> "AsyncGenerator[AsyncGenerator[bytes, None], None]":
        """Yields the output of a turn that has ended as JSON in pieces, for one that memory should not hold.

        Raises problems.NoOutput, problems.TurnNotFinished, DeadlineExceeded, or ConnectionLost where the connection breaks.
        """
        until = self._calls.deadline(deadline)
        target = self._path("output")

        async def attempt(token: str) -> AsyncStreaming:
            headers = {"authorization": f"Bearer {token}", "accept": "application/json"}
            return await AsyncStreaming.open(self._calls.http, target, headers, self._calls.timing.answer)

        what = f"GET {target}"
        async with aclosing(await self._calls.repeat(attempt, what, until)) as streaming:
            async with aclosing(streaming.rest(until, what)) as pieces:
                yield pieces

    async def cancel(self, *, deadline: float | None = None) -> None:
        """Cancels the turn; one that has ended stays as it is."""
        target = self._path("cancel") + query(uid=self.uid)
        self._read(await self._calls.call("POST", target, self._calls.deadline(deadline), body=b"{}"))

    async def log(self, *, deadline: float | None = None) -> str:
        """Returns the text that the agent has printed.

        Raises problems.TurnNotFinished while it runs: events(logs=True) has its lines; problems.NoLog where the text was lost
        before it could be kept.
        """
        return (await self._calls.get(self._path("log"), self._calls.deadline(deadline))).text()

    async def artifacts(self, *, deadline: float | None = None) -> "list[AsyncArtifact]":
        """Lists the files that the turn has left."""
        answer = await self._calls.get(self._path("artifacts"), self._calls.deadline(deadline))
        content: wire.ArtifactList = answer.json()
        return answer.read(
            lambda: [
                AsyncArtifact(self._calls, self._path("artifacts", item["name"]), item) for item in content["items"]
            ]
        )

    def approval(self, request_id: str) -> "AsyncApproval":
        """Returns a handle of a question whose id is known; sends no request."""
        return AsyncApproval(self._calls, self._path("approvals"), self.name, {"requestId": request_id})

    def asks(self) -> "AsyncApproval | None":
        """Returns what the turn asked when it was read last; None where it waited for no decision."""
        asked = self.object.get("status", {}).get("approval") if self.object else None
        if self.phase != "AwaitingApproval" or asked is None or "decided" in asked:
            return None
        return AsyncApproval(self._calls, self._path("approvals"), self.name, asked)

    def events(self, *, logs: bool = False, after: str | None = None) -> "AsyncEvents":
        """Follows the turn until it has ended. Of a turn that has ended there is its end alone.

        `logs`: with the lines that are printed meanwhile; `log()` has the text to its end.
        """

        async def has_ended() -> bool:
            await self.get()
            return self.phase in TERMINAL

        return AsyncEvents(
            self._calls,
            self.session._path("events") + query(logs=True if logs else None),
            after,
            self.session.uid,
            is_last=end_of_turn(self.name),
            is_shown=of_turn(self.name),
            has_ended=has_ended,
        )

    def _read(self, answer: Answer) -> "wire.Turn":
        data: wire.Turn = answer.json()
        uid = answer.read(lambda: data["metadata"]["uid"])
        refuse_other("Turn", self.name, uid, meant=self.uid)
        self.object = data
        return data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.session.name}/{self.name}>"
