"""One exchange with the server. Knows nothing of Berth's objects, and repeats nothing."""

import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager

import httpx2

from .._answer import Answer
from .._deadline import Deadline
from .._errors import ConnectionLost, DeadlineExceeded, OutputTooLarge
from .._retry import Timing
from .._server import Server
from .._version import VERSION
from ._io import limit, pieces_of

OnRequest = Callable[[str, str, int | Exception], None]
"""Called with method, URL and the status of each answer, or the error that came instead."""


class AsyncHttp:
    def __init__(
        self,
        server: Server,
        timing: Timing,
        *,
        verify: "ssl.SSLContext | bool",
        transport: httpx2.AsyncBaseTransport | None,
        max_answer: int,
        on_request: OnRequest | None,
    ) -> None:
        self._server = server
        self._timing = timing
        self._max_answer = max_answer
        self._on_request = on_request or (lambda method, url, outcome: None)
        self._client = httpx2.AsyncClient(
            # Reading the certificates of the system takes longer than a call, and here nobody needs them.
            verify=verify if server.url.startswith("https:") or not server.is_local else False,
            transport=transport,
            follow_redirects=False,
            # A proxy of the environment would see a token for this machine.
            trust_env=not server.is_local,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=4.0),
        )
        self.release: str | None = None
        """Release of the server, once it has answered."""

    async def exchange(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        deadline: Deadline,
        server_waits: float = 0.0,
    ) -> Answer:
        """Returns the whole answer, whatever its status. Raises ConnectionLost, OutputTooLarge or DeadlineExceeded."""
        silence = min(deadline.left(), self._timing.answer + server_waits)
        what = f"{method} {self._server.url}{target}"
        pieces: list[bytes] = []
        size = 0
        try:
            with limit(deadline.left()):
                async with self.stream(method, target, headers, body, silence) as (response, answer):
                    async with aclosing(pieces_of(response)) as content:
                        async for piece in content:
                            pieces.append(piece)
                            size += len(piece)
                            if size > self._max_answer:
                                raise OutputTooLarge(
                                    f"{what}: the answer has more than {self._max_answer} bytes. An output is read in pieces by "
                                    "stream_output(); or give the client a larger max_answer="
                                )
                            if deadline.left() == 0:
                                raise deadline.exceeded(what)
        except DeadlineExceeded:
            raise
        except TimeoutError:
            raise deadline.exceeded(what) from None
        return Answer(what, answer.status, answer.headers, b"".join(pieces))

    @asynccontextmanager
    async def stream(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, silence: float
    ) -> AsyncGenerator[tuple[httpx2.Response, Answer], None]:
        """Yields a response whose content is not read yet, with its head. Raises ConnectionLost, also for what its reader meets."""
        url = self._server.url + target
        timeout = httpx2.Timeout(max(silence, 0.001), connect=min(max(silence, 0.001), self._timing.connect))
        request = self._client.build_request(
            method,
            url,
            # Compressed content would be larger in memory than what is counted.
            headers={"accept-encoding": "identity", "user-agent": f"berth-client-python/{VERSION}", **headers},
            content=body,
            timeout=timeout,
        )
        try:
            response = await self._client.send(request, stream=True)
        except httpx2.TransportError as error:
            lost = connection_lost(
                error, f"{method} {url}", sent=not isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout))
            )
            self._on_request(method, url, lost)
            raise lost from error
        try:
            self._on_request(method, url, response.status_code)
            self.release = response.headers.get("berth-version") or self.release
            yield response, Answer(f"{method} {url}", response.status_code, response.headers, b"")
        except httpx2.TransportError as error:
            raise connection_lost(error, f"{method} {url}", sent=True) from error
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()


def connection_lost(error: httpx2.TransportError, what: str, *, sent: bool) -> ConnectionLost:
    words: dict[type[httpx2.TransportError], str] = {
        httpx2.ConnectTimeout: "no connection was made in time",
        httpx2.ReadTimeout: "nothing came for too long",
        httpx2.WriteTimeout: "the server takes no bytes",
    }
    why = words.get(type(error), str(error) or type(error).__name__)
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    # A refused certificate is an error of configuration; any other failure may pass.
    refused = isinstance(cause, ssl.SSLCertVerificationError)
    return ConnectionLost(f"{what}: {why}", sent=sent, transient=not refused)
