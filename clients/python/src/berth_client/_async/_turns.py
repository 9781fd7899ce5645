from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from .. import wire
from .._given import ABSENT, body
from .._paths import query
from ._calls import AsyncCalls
from ._pages import pages
from ._turn import AsyncTurn

if TYPE_CHECKING:
    from ._session import AsyncSession


class AsyncTurns:
    """The turns of a session."""

    def __init__(self, calls: AsyncCalls, session: "AsyncSession") -> None:
        self._calls = calls
        self._session = session

    async def create(
        self,
        *,
        input: Any = ABSENT,
        spec: "wire.TurnCreateSpec | None" = None,
        name: str | None = None,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> "AsyncTurn":
        """Gives the session a turn, which runs after those given before. `spec` has what else a turn may have."""
        content = body(spec, {"input": input}, name, labels, annotations)
        target = self._session._path("turns") + query(uid=self._session.uid)
        answer = await self._calls.create(target, content, idempotency_key, self._calls.deadline(deadline))
        data: wire.Turn = answer.json()
        return answer.read(lambda: AsyncTurn(self._calls, self._session, data["metadata"]["name"], data))

    async def get(self, name: str, *, deadline: float | None = None) -> "AsyncTurn":
        """Reads a turn."""
        turn = AsyncTurn(self._calls, self._session, name)
        await turn.get(deadline=deadline)
        return turn

    async def list(
        self,
        *,
        phase: str | None = None,
        label_selector: str | None = None,
        specs: bool = True,
        deadline: float | None = None,
    ) -> "AsyncIterator[AsyncTurn]":
        """Iterates over the turns, without inputs, outputs and logs.

        `phase`: those in this phase, or in several with commas. `specs`: False leaves out what most programs do not need of their specs.
        `deadline` is that of each page.
        """
        filters = {"phase": phase, "labelSelector": label_selector, "specs": None if specs else "false"}
        async for answer, item in pages(self._calls, self._session._path("turns"), filters, deadline):
            data: wire.Turn = item
            yield answer.read(lambda: AsyncTurn(self._calls, self._session, data["metadata"]["name"], data))
