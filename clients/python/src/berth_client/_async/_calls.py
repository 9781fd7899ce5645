"""Requests that are tried again until they are answered, refused for good, or their deadline is over."""

import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from .. import _json, problems
from .._answer import Answer, error_of
from .._deadline import Deadline
from .._errors import BerthError, ConnectionLost
from .._retry import Timing, is_transient, pause
from .._server import Server, expiry_of, origin_of
from ._http import AsyncHttp
from ._io import sleep, token_of

T = TypeVar("T")


class AsyncCalls:
    def __init__(self, http: AsyncHttp, server: Server, timing: Timing, deadline: float) -> None:
        self.http = http
        self.timing = timing
        self.server = server
        self._deadline = deadline
        self._was_answered = False

    def deadline(self, seconds: float | None) -> Deadline:
        return Deadline(self._deadline if seconds is None else seconds)

    async def get(self, target: str, deadline: Deadline, server_waits: float = 0.0) -> Answer:
        return await self.call("GET", target, deadline, server_waits=server_waits)

    async def create(
        self, target: str, body: dict[str, Any], key: str | None, deadline: Deadline, server_waits: float = 0.0
    ) -> Answer:
        """Posts the body with a key, so that all tries together make one object. Raises ValueError for what is no JSON."""
        key = secrets.token_hex(16) if key is None else key
        content = _json.write(body, "the body of the request")
        try:
            return await self.call("POST", target, deadline, key=key, body=content, server_waits=server_waits)
        except BerthError as error:
            error.idempotency_key = key
            raise

    async def delete(self, target: str, deadline: Deadline) -> None:
        """Deletes. When an answer was lost, a later one that it is gone is the success of the earlier try."""
        failures: list[BerthError] = []
        try:
            await self.call("DELETE", target, deadline, failures=failures)
        except (problems.NotFound, problems.UIDMismatch):
            if not any(isinstance(error, ConnectionLost) and error.sent for error in failures):
                raise

    async def call(
        self,
        method: str,
        target: str,
        deadline: Deadline,
        *,
        key: str | None = None,
        body: bytes | None = None,
        server_waits: float = 0.0,
        failures: list[BerthError] | None = None,
    ) -> Answer:
        """Returns the first answer of success; raises as `repeat` does."""
        headers = {"accept": "application/json, */*"}
        if key is not None:
            headers["idempotency-key"] = key
        if body is not None:
            headers["content-type"] = "application/json"

        async def attempt(token: str) -> Answer:
            answer = await self.http.exchange(
                method, target, {**headers, "authorization": f"Bearer {token}"}, body, deadline, server_waits
            )
            if 200 <= answer.status < 300:
                return answer
            raise error_of(answer)

        return await self.repeat(attempt, f"{method} {self.server.url}{target}", deadline, failures)

    async def repeat(
        self,
        attempt: Callable[[str], Awaitable[T]],
        what: str,
        deadline: Deadline,
        failures: list[BerthError] | None = None,
    ) -> T:
        """Returns what the attempt, a function of the token, returns in the end. Transient failures are added to `failures`.

        Raises ProblemError, NotBerth, ConnectionLost, DeadlineExceeded, ConfigurationError or what the function for the token raises.
        """
        failures = [] if failures is None else failures
        was_renewed = False
        while True:
            token = await token_of(self.server.token)
            if deadline.left() == 0:
                raise deadline.exceeded(what, failures[-1] if failures else None)
            try:
                done = await attempt(token)
                self._was_answered = True
                return done
            except problems.Unauthenticated as error:
                # The token may have been renewed since it was read.
                if was_renewed or await token_of(self.server.token) == token:
                    raise self._refused(error, token) from None
                was_renewed = True
            except BerthError as error:
                failures.append(error)
                await self._before_next(error, len(failures), deadline, what)

    async def pause_if_early(self, early: int, asked: float, wait: float, deadline: Deadline) -> int:
        """Pauses after an answer that came before the server had waited, ever longer. Returns how many of them there were in a row.

        `asked` is a time of the monotonic clock.
        """
        if time.monotonic() - asked >= wait / 2:
            return 0
        await sleep(min(pause(None, early + 1, self.timing), deadline.left()))
        return early + 1

    async def _before_next(self, error: BerthError, failures: int, deadline: Deadline, what: str) -> None:
        """Waits until the next attempt. Raises the error where there is none, or DeadlineExceeded."""
        if not is_transient(error):
            raise error
        wait = pause(error, failures, self.timing)
        if isinstance(error, ConnectionLost) and not error.sent and not self._was_answered:
            # The address may be wrong, which is said soon.
            if deadline.seconds - deadline.left() + wait > self.timing.first_contact:
                raise error
        if wait >= deadline.left():
            raise deadline.exceeded(what, error)
        await sleep(wait)

    def _refused(self, error: problems.Unauthenticated, token: str) -> problems.Unauthenticated:
        given = self.server.token
        again = "" if isinstance(given, str) else " The token was read again, and is refused."
        expiry = expiry_of(token)
        over = f", and expired at {expiry.isoformat()}" if expiry and expiry < datetime.now(UTC) else ""
        detail = f"{error.detail}{again} It is from {origin_of(given)}{over}."
        return problems.Unauthenticated(error.code, detail, status=error.status, request_id=error.request_id)
