"""An HTTP server that answers as a test says, also wrongly."""

import json
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    number: int
    """From 0."""

    @property
    def path(self) -> str:
        return self.target.split("?")[0]


def reply(status: int, content: Any = b"", **headers: str) -> bytes:
    """Returns an answer; content other than bytes is sent as JSON. Underscores in names of headers stand for hyphens."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    given = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "berth-version": "9.9.9",
        "connection": "close",
    }
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body


def problem(status: int, code: str, **headers: str) -> bytes:
    content = {"type": "", "title": "", "status": status, "code": code, "detail": f"it is {code}"}
    return reply(status, content, **{"content_type": "application/problem+json", **headers})


STREAM = b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def event(id: str, type: str, data: Any) -> bytes:
    return f"id: {id}\nevent: {type}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


Answers = bytes | Iterable[bytes]
"""Bytes, or pieces that are sent one after the other. Then the connection is closed."""


@dataclass
class Server:
    """Answers each request with what the function returns."""

    answer: Callable[[Request], Answers]
    requests: list[Request] = field(default_factory=list)
    hung: threading.Event = field(default_factory=threading.Event)
    """Set when an answer stands still."""
    left: threading.Event = field(default_factory=threading.Event)
    """Set when a client has closed the connection on which an answer stood still."""

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._threads: list[threading.Thread] = []
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def hang(self, *pieces: bytes) -> Iterable[bytes]:
        """Returns an answer that begins with these pieces and then stands still until the client leaves."""
        yield from pieces
        self.hung.set()
        yield b"HANG"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            try:
                method, target, _ = incoming.readline().decode().split(" ", 2)
                headers = {}
                while line := incoming.readline().decode().strip():
                    name, value = line.split(": ", 1)
                    headers[name.lower()] = value
                body = incoming.read(int(headers.get("content-length", "0")))
                request = Request(method, target, headers, body, len(self.requests))
                self.requests.append(request)
                answer = self.answer(request)
                for piece in [answer] if isinstance(answer, bytes) else answer:
                    if piece == b"HANG":
                        incoming.read(1)
                        self.left.set()
                        return
                    connection.sendall(piece)
            except (OSError, ValueError):
                self.left.set()


def turn(phase: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "s-1", "uid": "turn-uid"},
        "spec": {"session": "s"},
        "status": {"phase": phase, **status},
    }


def session(name: str = "s", uid: str = "session-uid") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", "uid": uid}, "spec": {}, "status": {"phase": "Ready"}}


def run(phase: str, **more: Any) -> bytes:
    """Returns the answer to a run."""
    content = {"session": session(), "turn": turn(phase), "phase": phase, **more}
    return reply(200, content, location="/v1/namespaces/default/sessions/s/turns/s-1")
