from typing import Any, Literal

from .. import wire
from .._given import ABSENT
from ._calls import AsyncCalls


class AsyncApproval:
    """A question that a turn asks people. The first decision counts: another is problems.AlreadyDecided, which says who has decided."""

    def __init__(self, calls: AsyncCalls, path: str, turn: str, asked: Any) -> None:
        self._calls = calls
        self._path = path
        self.turn = turn
        """Name of the turn."""
        self.request_id: str = asked["requestId"]
        self.prompt: str | None = asked.get("prompt")
        """What people are asked; None where only the id is known."""
        self.payload: Any = asked.get("payload")
        """Further data of the question; None without any."""

    async def approve(
        self,
        *,
        response: Any = ABSENT,
        note: str | None = None,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> "wire.Approval":
        """Approves. The agent gets `response`, any JSON, and `note`, the reason in words. Takes the right to create approvals."""
        return await self._decide("Approve", response, note, idempotency_key, deadline)

    async def deny(
        self,
        *,
        response: Any = ABSENT,
        note: str | None = None,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> "wire.Approval":
        """Denies. The turn goes on: the agent gets the decision."""
        return await self._decide("Deny", response, note, idempotency_key, deadline)

    async def _decide(
        self,
        decision: Literal["Approve", "Deny"],
        response: Any,
        note: str | None,
        key: str | None,
        deadline: float | None,
    ) -> "wire.Approval":
        spec = {
            "requestId": self.request_id,
            "decision": decision,
            "response": response,
            "note": ABSENT if note is None else note,
        }
        content = {"spec": {key: value for key, value in spec.items() if value is not ABSENT}}
        answer = await self._calls.create(self._path, content, key, self._calls.deadline(deadline))
        decided: wire.Approval = answer.json()
        return decided

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.request_id} of turn {self.turn}: {self.prompt!r}>"
