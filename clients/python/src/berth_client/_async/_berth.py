import secrets
import ssl
import time
from types import TracebackType
from typing import Any, Self

import httpx2

from .. import _json, wire
from .._answer import Answer
from .._deadline import Deadline
from .._errors import BerthError
from .._given import ABSENT, body
from .._paths import path, query
from .._retry import Timing
from .._server import Token, choose_server
from ._calls import AsyncCalls
from ._events import AsyncEvents
from ._http import AsyncHttp, OnRequest
from ._result import AsyncResult
from ._session import AsyncSession
from ._sessions import AsyncSessions
from ._turn import TERMINAL, OnApproval

_MAX_ANSWER = 64 * 1024 * 1024


class AsyncBerth:
    """Client of Berth's HTTP API.

    Without `server`: BERTH_SERVER, else the embedded cluster of this machine. `token` is a token, a `pathlib.Path` of a file that is read
    for each request, or a function that is called for each; without it: BERTH_TOKEN_FILE, else the token that is projected into the pod. `deadline` is the time
    of a call with all its tries, in seconds. `verify`: a TLS context, for a certificate authority of your own. `max_answer`: bytes that an
    answer may have in memory. Raises ConfigurationError.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        token: Token | None = None,
        namespace: str | None = None,
        deadline: float = 300.0,
        verify: "ssl.SSLContext | bool" = True,
        allow_plain_text: bool = False,
        max_answer: int = _MAX_ANSWER,
        timing: Timing = Timing(),
        on_request: OnRequest | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        chosen = choose_server(server, token, namespace, allow_plain_text)
        self._http = AsyncHttp(
            chosen, timing, verify=verify, transport=transport, max_answer=max_answer, on_request=on_request
        )
        self._calls = AsyncCalls(self._http, chosen, timing, deadline)
        self.namespace = chosen.namespace
        self.sessions = AsyncSessions(self._calls, chosen.namespace)

    @property
    def server_release(self) -> str | None:
        """Release of the server, once it has answered. `berth_client.__version__` is that of this package."""
        return self._http.release

    def session(self, name: str) -> "AsyncSession":
        """Returns a handle of the session; sends no request."""
        return AsyncSession(self._calls, self.namespace, name)

    async def run(
        self,
        *,
        input: Any,
        class_: str | None = None,
        spec: "wire.SessionCreateSpec | None" = None,
        name: str | None = None,
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        idempotency_key: str | None = None,
        on_approval: OnApproval | None = None,
        deadline: float | None = None,
    ) -> "AsyncResult":
        """Runs one input in a session of its own and returns the result.

        `class_` and `input` are fields of the session's spec; `spec` has what else it may have. `on_approval` is called with each
        question of the agent. Raises TurnFailed, TurnTimedOut, TurnCancelled, or DeadlineExceeded. The run goes on then: a call with
        the same `idempotency_key` waits for it again.
        """
        fields = {"class": ABSENT if class_ is None else class_, "input": input}
        content = body(spec, fields, name, labels, annotations)
        key = secrets.token_hex(16) if idempotency_key is None else idempotency_key
        try:
            return await self._run(content, key, on_approval, self._calls.deadline(deadline))
        except BerthError as error:
            error.idempotency_key = key
            raise

    async def _run(
        self, content: dict[str, Any], key: str, on_approval: OnApproval | None, until: Deadline
    ) -> "AsyncResult":
        answer = await self._begun(content, key, until)
        data: wire.Run = answer.json()
        meta = answer.read(lambda: data["session"]["metadata"])
        session = AsyncSession(self._calls, meta["namespace"], meta["name"], data["session"])
        taken_up: wire.Turn = answer.read(lambda: answer.json()["turn"])
        turn = session.turn(taken_up["metadata"]["name"])
        turn.object = taken_up
        if turn.phase in TERMINAL:
            return await turn._result(answer, _json.member(answer.text(), "output"), until)
        return await turn.result(on_approval=on_approval, deadline=max(until.left(), 0.001))

    def events(self, *, after: str | None = None) -> "AsyncEvents":
        """Follows all sessions and turns of the namespace, without the events of agents and without lines. It has no end."""
        target = path("namespaces", self.namespace, "events")
        return AsyncEvents(self._calls, target, after, None, is_last=lambda event: False, is_of_one=False)

    async def _begun(self, content: dict[str, Any], key: str, until: Deadline) -> Answer:
        """Creates a run and returns the answer that has its turn.

        Until the cluster has taken the run up there is no turn that could be waited for: the same request with the same key waits on.
        """
        early = 0
        while True:
            wait = min(self._calls.timing.wait, 60.0, until.left())
            asked = time.monotonic()
            target = path("namespaces", self.namespace, "runs") + query(wait=f"{max(1, int(wait * 1000))}ms")
            answer = await self._calls.create(target, content, key, until, wait)
            run = answer.json()
            if answer.read(lambda: "turn" in run):
                return answer
            early = await self._calls.pause_if_early(early, asked, wait, until)
            if until.left() == 0:
                raise until.exceeded("the run has not been taken up")

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._calls.server.url}>"
