"""Cancellation wherever a call may wait."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from berth_client import AsyncBerth, Timing

from .client import client
from .server import STREAM, Answers, Request, Server, problem, reply
from .test_artifacts import CONTENT, head, listing

pytestmark = pytest.mark.anyio


async def cancelled(call: Awaitable[object], when: Callable[[], bool]) -> None:
    """Cancels the call once the condition holds; no task of it is left."""
    before = asyncio.all_tasks()
    task = asyncio.ensure_future(call)
    async with asyncio.timeout(60):
        while not when():
            await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before


async def follow(berth: AsyncBerth) -> None:
    async with berth.session("s").events() as events:
        async for _ in events:
            pass


CALLS: dict[str, Callable[[AsyncBerth], Awaitable[object]]] = {
    "run": lambda berth: berth.run(input=1),
    "result": lambda berth: berth.session("s").turn("s-1").result(),
    "delete": lambda berth: berth.session("s").delete(),
    "events": follow,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("begun", [(), (b"HTTP/1.1 2",), (STREAM,), (b"HTTP/1.1 503 X\r\ncontent-length: 9\r\n\r\n{",)])
async def test_a_call_that_is_cancelled_while_it_reads_closes_its_connection(
    call: str, begun: tuple[bytes, ...]
) -> None:
    with Server(lambda request: server.hang(*begun)) as server:
        async with client(server.url) as berth:
            await cancelled(CALLS[call](berth), server.hung.is_set)
            assert await asyncio.to_thread(server.left.wait, 60)


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_can_be_cancelled_while_it_waits_to_try_again(call: str) -> None:
    with Server(lambda request: problem(503, "Overloaded", retry_after="60")) as server:
        async with client(server.url, deadline=600) as berth:
            await cancelled(CALLS[call](berth), lambda: bool(server.requests))


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_can_be_cancelled_while_it_gets_its_token(call: str) -> None:
    asked = asyncio.Event()

    async def token() -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    with Server(lambda request: b"") as server:
        async with client(server.url, token=token) as berth:
            await cancelled(CALLS[call](berth), asked.is_set)
    assert server.requests == []


async def test_a_stream_can_be_cancelled_while_it_waits_to_begin_again() -> None:
    with Server(lambda request: STREAM) as server:
        async with client(server.url, timing=Timing(retry_first=600, retry_most=600)) as berth:
            await cancelled(follow(berth), lambda: bool(server.requests))


async def test_a_download_that_is_cancelled_leaves_no_file(tmp_path: Path) -> None:
    def answer(request: Request) -> Answers:
        return listing() if request.path.endswith("/artifacts") else server.hang(head(200, len(CONTENT)), CONTENT[:100])

    with Server(answer) as server:
        async with client(server.url) as berth:
            [one] = await berth.session("s").turn("s-1").artifacts()
            await cancelled(one.save(tmp_path / "a"), server.hung.is_set)
            assert list(tmp_path.iterdir()) == []
            assert await asyncio.to_thread(server.left.wait, 60)


async def test_a_client_can_be_used_after_a_call_was_cancelled() -> None:
    with Server(lambda request: reply(204) if request.number else server.hang()) as server:
        async with client(server.url) as berth:
            await cancelled(CALLS["delete"](berth), server.hung.is_set)
            await berth.session("s").delete()


async def test_another_task_ends_an_iteration() -> None:
    with Server(lambda request: server.hang(STREAM)) as server:
        async with client(server.url) as berth, berth.session("s").events() as events:
            reading = asyncio.ensure_future(anext(events, None))
            await asyncio.to_thread(server.hung.wait, 60)
            await events.aclose()
            async with asyncio.timeout(60):
                assert await reading is None
