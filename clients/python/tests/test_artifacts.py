"""Artifacts: cut, resumed, damaged."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from berth_client import AsyncArtifact, AsyncBerth, ContentDamaged, DeadlineExceeded, problems

from .client import client
from .server import Answers, Request, Server, problem, reply

pytestmark = pytest.mark.anyio
CONTENT = bytes(range(256)) * 40


def listing(**more: Any) -> bytes:
    item = {"name": "report/a.bin", "bytes": len(CONTENT), "digest": hashlib.sha256(CONTENT).hexdigest(), **more}
    return reply(200, {"items": [item]})


def head(status: int, size: int) -> bytes:
    return f'HTTP/1.1 {status} X\r\ncontent-type: application/octet-stream\r\netag: "1"\r\ncontent-length: {size}\r\n\r\n'.encode()


def rest(request: Request) -> Answers:
    """Answers as the server does."""
    start = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
    return head(206 if start else 200, len(CONTENT) - start) + CONTENT[start:]


async def artifact(berth: AsyncBerth) -> AsyncArtifact:
    [only] = await berth.session("s").turn("s-1").artifacts()
    return only


async def test_a_download_that_is_cut_goes_on_by_range(tmp_path: Path) -> None:
    def answer(request: Request) -> Answers:
        if request.path.endswith("/artifacts"):
            return listing(executable=True)
        return head(200, len(CONTENT)) + CONTENT[:5000] if request.number == 1 else rest(request)

    target = tmp_path / "a.bin"
    target.write_text("what was there before")
    with Server(answer) as server:
        async with client(server.url) as berth:
            await (await artifact(berth)).save(target)
    assert target.read_bytes() == CONTENT and target.stat().st_mode & 0o100
    assert server.requests[1].path.endswith("/artifacts/report%2Fa.bin")
    again = server.requests[2].headers
    assert (again["range"], again["if-range"]) == ("bytes=5000-", '"1"')
    assert [file.name for file in tmp_path.iterdir()] == ["a.bin"]


async def test_a_proxy_that_knows_no_ranges_sends_the_beginning_again_in_vain() -> None:
    def answer(request: Request) -> Answers:
        if request.path.endswith("/artifacts"):
            return listing()
        return head(200, len(CONTENT)) + (CONTENT[:5000] if request.number == 1 else CONTENT)

    with Server(answer) as server:
        async with client(server.url) as berth:
            assert await (await artifact(berth)).read() == CONTENT


async def test_a_content_that_was_damaged_on_its_way_is_read_once_more(tmp_path: Path) -> None:
    def answer(request: Request) -> Answers:
        if request.path.endswith("/artifacts"):
            return listing()
        # The damaged one is the longer: nothing of it may stay.
        return head(200, len(CONTENT) + 1) + CONTENT + b"x" if request.number % 2 else rest(request)

    with Server(answer) as server:
        async with client(server.url) as berth:
            one = await artifact(berth)
            assert await one.read() == CONTENT
            await one.save(tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert [request.headers.get("range") for request in server.requests] == [None] * 5


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (head(200, len(CONTENT)) + b"\x01" + CONTENT[1:], ContentDamaged),
        (head(200, 10) + CONTENT[:10], ContentDamaged),
        (head(200, len(CONTENT) + 1) + CONTENT + b"x", ContentDamaged),
        (problem(404, "NoArtifact"), problems.NoArtifact),
        (head(200, len(CONTENT)) + CONTENT[:1], DeadlineExceeded),
    ],
)
async def test_what_is_not_whole_gets_no_file(content: bytes, error: type[Exception], tmp_path: Path) -> None:
    with Server(lambda request: listing() if request.path.endswith("/artifacts") else content) as server:
        async with client(server.url) as berth:
            one = await artifact(berth)
            with pytest.raises(error):
                await one.save(tmp_path / "a.bin", deadline=2 if error is DeadlineExceeded else 60)
    assert list(tmp_path.iterdir()) == []


async def test_a_reader_that_stops_leaves_no_connection(tmp_path: Path) -> None:
    def answer(request: Request) -> Answers:
        return listing() if request.path.endswith("/artifacts") else server.hang(head(200, len(CONTENT)), CONTENT[:10])

    with Server(answer) as server:
        async with client(server.url) as berth:
            async with (await artifact(berth)).stream() as pieces:
                async for piece in pieces:
                    assert piece == CONTENT[:10]
                    break
            assert server.left.wait(60)


async def test_a_folder_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with Server(lambda request: listing()) as server:
        async with client(server.url) as berth:
            one = await artifact(berth)
            with pytest.raises(IsADirectoryError, match="give the path of the file"):
                await one.save(tmp_path)
    assert len(server.requests) == 1


async def test_a_file_that_cannot_be_written_is_told_and_ends_the_download(tmp_path: Path) -> None:
    with Server(lambda request: listing() if request.path.endswith("/artifacts") else rest(request)) as server:
        async with client(server.url) as berth:
            one = await artifact(berth)
            with pytest.raises(FileNotFoundError):
                await one.save(tmp_path / "none" / "a.bin")
            assert await one.read() == CONTENT
