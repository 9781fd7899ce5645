"""Cancellation at every step of a program that uses most of the client."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from berth_client import AsyncBerth, Timing

from .client import TOKEN
from .server import event, session, turn

pytestmark = pytest.mark.anyio
CONTENT = b"content" * 100
NO_PAUSES = Timing(retry_first=0, retry_most=0)
"""The number of steps is the same each time."""


class Stream(httpx2.AsyncByteStream):
    """A content that comes in pieces, with a step of the loop before each; `open` has those that are not closed."""

    open: "set[Stream]" = set()

    def __init__(self, content: bytes, breaks: bool = False) -> None:
        self._pieces = [content[: len(content) // 2], content[len(content) // 2 :]]
        self._breaks = breaks
        self.open.add(self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces[:1] if self._breaks else self._pieces:
            await asyncio.sleep(0)
            yield piece
        if self._breaks:
            raise httpx2.ReadError("the connection is cut")

    async def aclose(self) -> None:
        self.open.discard(self)


class Transport(httpx2.AsyncBaseTransport):
    """Answers the program below; each page breaks the first time."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0)
        page = request.url.path.rsplit("/", 1)[1]
        breaks = page not in self._seen
        self._seen.add(page)
        item = {"name": "a", "bytes": len(CONTENT), "digest": hashlib.sha256(CONTENT).hexdigest()}
        end = {"session": "s", "turn": "s-1", "uid": "turn-uid", "phase": "Succeeded"}
        json = {"content-type": "application/json"}
        if page == "runs":
            location = {**json, "location": "/v1/namespaces/default/sessions/s/turns/s-1"}
            whole = {"session": session(), "turn": turn("Running"), "phase": "Running"}
            return httpx2.Response(
                202, headers=location, stream=Stream(httpx2.Response(200, json=whole).content, breaks)
            )
        if page == "events":
            return httpx2.Response(200, stream=Stream(event("1", "turn", end), breaks))
        if page == "a":
            start = int(request.headers.get("range", "bytes=0-")[6:-1])
            return httpx2.Response(206 if start else 200, stream=Stream(CONTENT[start:], breaks))
        content = {"s-1": turn("Succeeded", output=1), "artifacts": {"items": [item]}}[page]
        return httpx2.Response(200, headers=json, stream=Stream(httpx2.Response(200, json=content).content, breaks))


async def program(folder: Path) -> None:
    async def token() -> str:
        await asyncio.sleep(0)
        return TOKEN

    transport = Transport()
    async with AsyncBerth("http://127.0.0.1:1", token=token, timing=NO_PAUSES, transport=transport) as berth:
        result = await berth.run(input=1)
        async with result.turn.events(after="0") as events:
            assert [one.type async for one in events] == ["turn"]
        [artifact] = await result.turn.artifacts()
        await artifact.save(folder / "a")
        (folder / "a").unlink()


async def test_a_cancellation_at_any_step_leaves_no_task_connection_or_file(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    for step in range(10_000):
        task = asyncio.ensure_future(program(tmp_path))
        for _ in range(step):
            await asyncio.sleep(0)
            if task.done():
                break
        if task.done():
            break
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert Stream.open == set(), step
        assert list(tmp_path.iterdir()) == [], step
        assert asyncio.all_tasks() == before, step
    else:
        pytest.fail("the program has no end")
    await task
    assert step > 30
