from collections.abc import AsyncIterator
from typing import Any

from .. import wire
from .._given import ABSENT, body
from .._paths import path
from ._calls import AsyncCalls
from ._pages import pages
from ._session import AsyncSession


class AsyncSessions:
    """The sessions of a namespace."""

    def __init__(self, calls: AsyncCalls, namespace: str) -> None:
        self._calls = calls
        self._namespace = namespace

    async def create(
        self,
        *,
        class_: str | None = None,
        input: Any = ABSENT,
        spec: "wire.SessionCreateSpec | None" = None,
        name: str | None = None,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        idempotency_key: str | None = None,
        deadline: float | None = None,
    ) -> "AsyncSession":
        """Creates a session. `class_` and `input` are fields of its spec; `spec` has what else it may have."""
        fields = {"class": ABSENT if class_ is None else class_, "input": input}
        content = body(spec, fields, name, labels, annotations)
        target = path("namespaces", self._namespace, "sessions")
        answer = await self._calls.create(target, content, idempotency_key, self._calls.deadline(deadline))
        data: wire.Session = answer.json()
        return answer.read(lambda: AsyncSession(self._calls, self._namespace, data["metadata"]["name"], data))

    async def get(self, name: str, *, deadline: float | None = None) -> "AsyncSession":
        """Reads a session."""
        session = AsyncSession(self._calls, self._namespace, name)
        await session.get(deadline=deadline)
        return session

    async def list(
        self,
        *,
        phase: str | None = None,
        label_selector: str | None = None,
        parent: str | None = None,
        specs: bool = True,
        deadline: float | None = None,
    ) -> "AsyncIterator[AsyncSession]":
        """Iterates over the sessions, without their inputs.

        `phase`: those in this phase, or in several with commas. `parent`: those made for the session of this name. `specs`: False leaves
        out what most programs do not need of their specs. `deadline` is that of each page.
        """
        filters = {
            "phase": phase,
            "labelSelector": label_selector,
            "parent": parent,
            "specs": None if specs else "false",
        }
        async for answer, item in pages(
            self._calls, path("namespaces", self._namespace, "sessions"), filters, deadline
        ):
            data: wire.Session = item
            yield answer.read(lambda: AsyncSession(self._calls, self._namespace, data["metadata"]["name"], data))
