from collections.abc import AsyncIterator
from typing import Any

from .. import wire
from .._answer import Answer, refuse_other
from .._paths import path, query
from ._approval import AsyncApproval
from ._calls import AsyncCalls
from ._events import AsyncEvents, session_is_deleted
from ._turn import AsyncTurn
from ._turns import AsyncTurns


class AsyncSession:
    """A session. Making one sends no request."""

    def __init__(self, calls: AsyncCalls, namespace: str, name: str, data: "wire.Session | None" = None) -> None:
        self._calls = calls
        self.namespace = namespace
        self.name = name
        self.object = data
        """The session as it was read last."""
        self.turns = AsyncTurns(calls, self)

    @property
    def uid(self) -> str | None:
        """UID of the session, once it was read: calls then leave another session that has come under the name alone."""
        return self.object["metadata"]["uid"] if self.object else None

    @property
    def phase(self) -> str | None:
        """Phase when it was read last."""
        return self.object.get("status", {}).get("phase", "Queued") if self.object else None

    def _path(self, *parts: str) -> str:
        return path("namespaces", self.namespace, "sessions", self.name, *parts)

    def turn(self, name: str) -> "AsyncTurn":
        """Returns a handle of the turn; sends no request."""
        return AsyncTurn(self._calls, self, name)

    async def get(self, *, deadline: float | None = None) -> "wire.Session":
        """Reads the session. Looking never wakes it."""
        return self._read(await self._calls.get(self._path(), self._calls.deadline(deadline)))

    async def suspend(
        self, *, hold: bool = False, idempotency_key: str | None = None, deadline: float | None = None
    ) -> None:
        """After the turns given so far, stores the state and gives up the pod. `hold`: turns wait until it is resumed."""
        await self._change("suspend", {"hold": True} if hold else {}, deadline, idempotency_key)

    async def resume(self, *, deadline: float | None = None) -> None:
        """Takes back a suspension or hold."""
        await self._change("resume", {}, deadline)

    async def restart(self, *, idempotency_key: str | None = None, deadline: float | None = None) -> None:
        """Replaces the pod once the running turn has ended."""
        await self._change("restart", {}, deadline, idempotency_key)

    async def touch(self, *, deadline: float | None = None) -> None:
        """Counts as activity, so that the session keeps its pod."""
        await self._change("touch", {}, deadline)

    async def delete(self, *, deadline: float | None = None) -> None:
        """Deletes the session with its pod, turns, state and logs."""
        await self._calls.delete(self._path() + query(uid=self.uid), self._calls.deadline(deadline))

    async def approvals(self, *, deadline: float | None = None) -> "AsyncIterator[AsyncApproval]":
        """Iterates over the questions that wait for a decision. `deadline` is that of each page."""
        async for turn in self.turns.list(phase="AwaitingApproval", deadline=deadline):
            asked = turn.asks()
            if asked:
                yield asked

    def approval(self, event: "wire.ApprovalEvent") -> "AsyncApproval":
        """Returns the question that an event of the type `approval` tells of; sends no request."""
        return AsyncApproval(self._calls, self._path("turns", event["turn"], "approvals"), event["turn"], event)

    def events(self, *, logs: bool = False, after: str | None = None) -> "AsyncEvents":
        """Follows the session until it is deleted. `logs`: with the lines that its agent prints.

        Without `after` it begins with the present states. `after`: id of the last event that was read, or "0.0.0.0" for all that is kept.
        """
        return AsyncEvents(
            self._calls,
            self._path("events") + query(logs=True if logs else None),
            after,
            self.uid,
            is_last=session_is_deleted,
        )

    async def _change(self, what: str, content: dict[str, Any], deadline: float | None, key: str | None = None) -> None:
        target = self._path(what) + query(uid=self.uid)
        until = self._calls.deadline(deadline)
        if what in ("suspend", "restart"):
            self._read(await self._calls.create(target, content, key, until))
        else:
            self._read(await self._calls.call("POST", target, until, body=b"{}"))

    def _read(self, answer: Answer) -> "wire.Session":
        data: wire.Session = answer.json()
        uid = answer.read(lambda: data["metadata"]["uid"])
        refuse_other("Session", self.name, uid, meant=self.uid)
        self.object = data
        return data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.namespace}/{self.name}>"
