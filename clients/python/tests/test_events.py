"""Streams of events that are lost and go on."""

from collections.abc import Iterable
from typing import Any

import pytest
from berth_client import ReleaseMismatch, Timing, _retry, problems
from berth_client._async import _events
from berth_client._sse import Decoder

from .client import FAST, client
from .server import STREAM, Answers, Request, Server, event, problem, reply, turn

pytestmark = pytest.mark.anyio
SESSION = {"session": "s", "uid": "session-uid", "phase": "Ready"}
DELETED = event("9", "deleted", {"session": "s", "uid": "session-uid"})


async def test_a_stream_cut_at_any_byte_goes_on_after_the_last_event_and_tells_each_once() -> None:
    events = [event(str(n), "log", {"session": "s", "text": f"{n} 😀 é"}) for n in range(1, 4)]
    whole = b": berth\n\n" + b"".join(events) + DELETED
    cut = 0

    def answer(request: Request) -> Answers:
        if request.number == 0:
            return STREAM + whole[:cut]
        after = int(request.headers.get("last-event-id", "0"))
        return STREAM + b"".join(events[after:]) + DELETED

    with Server(answer) as server:
        async with client(server.url) as berth:
            for cut in range(len(whole)):
                server.requests.clear()
                async with berth.session("s").events(logs=True) as stream:
                    texts = [one.data.get("text") async for one in stream]
                assert texts == ["1 😀 é", "2 😀 é", "3 😀 é", None], cut
                assert len(server.requests) == 2
                assert server.requests[0].target.endswith("/events?logs=true")


async def test_the_caller_goes_on_after_an_id_of_before() -> None:
    with Server(lambda request: STREAM + DELETED) as server:
        async with client(server.url) as berth, berth.session("s").events(after="7") as stream:
            assert [one.id async for one in stream] == ["9"]
            assert stream.last_id == "9"
    assert server.requests[0].headers["last-event-id"] == "7"


async def test_a_refusal_ends_the_iteration_and_a_busy_server_does_not() -> None:
    answers = [problem(429, "CallerLimit"), STREAM, problem(503, "ShuttingDown"), problem(404, "NotFound")]
    with Server(lambda request: answers[request.number]) as server:
        async with client(server.url) as berth, berth.session("s").events() as stream:
            with pytest.raises(problems.NotFound):
                await anext(stream)
    assert len(server.requests) == 4


async def test_a_stream_that_is_silent_is_begun_again() -> None:
    timing = Timing(stream_silence=0.1, retry_first=0.001)
    with Server(lambda request: STREAM + DELETED if request.number else server.hang(STREAM)) as server:
        async with client(server.url, timing=timing) as berth, berth.session("s").events() as stream:
            assert [one.type async for one in stream] == ["deleted"]
    assert server.left.is_set()


async def test_a_stream_that_ends_at_once_is_begun_at_most_twelve_times_in_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(_events, "sleep", sleep)
    # The shortest pauses that chance may give.
    monkeypatch.setattr(_retry.random, "random", lambda: 0.0)
    with Server(lambda request: STREAM + DELETED if request.number == 12 else STREAM) as server:
        async with client(server.url, timing=Timing()) as berth, berth.session("s").events() as stream:
            assert [one.type async for one in stream] == ["deleted"]
    assert len(waited) == 12 and sum(waited[:11]) >= 10


async def test_a_namespace_is_followed_over_its_sessions() -> None:
    events = [event(str(n), "session", {**SESSION, "session": f"s-{n}", "uid": f"uid-{n}"}) for n in range(3)]
    gone = event("3", "deleted", {"session": "s-0", "uid": "uid-0"})
    with Server(
        lambda request: STREAM + b"".join(events) + gone if request.number == 0 else STREAM + events[0]
    ) as server:
        async with client(server.url) as berth, berth.events() as stream:
            seen = [(await anext(stream)).data["session"] for _ in range(5)]
    assert seen == ["s-0", "s-1", "s-2", "s-0", "s-0"]
    assert server.requests[1].headers["last-event-id"] == "3"


async def test_another_session_of_the_name_is_not_followed() -> None:
    taken = event("1", "session", {**SESSION, "uid": "other"})
    answers = [STREAM + event("1", "session", SESSION), STREAM + taken]
    with Server(lambda request: answers[request.number]) as server:
        async with client(server.url) as berth, berth.session("s").events() as stream:
            assert (await anext(stream)).type == "session"
            with pytest.raises(problems.UIDMismatch, match="the UID other, and session-uid was followed"):
                await anext(stream)


async def test_an_event_of_a_later_release_is_told_and_one_that_cannot_be_read_is_an_error() -> None:
    with Server(lambda request: STREAM + event("1", "weather", {"sun": 1}) + event("2", "session", [])) as server:
        async with client(server.url) as berth, berth.session("s").events() as stream:
            assert (await anext(stream)).data == {"sun": 1}
            with pytest.raises(ReleaseMismatch, match="type session"):
                await anext(stream)


def of_turn(name: str, phase: str) -> bytes:
    return event("1", "turn", {"session": "s", "turn": name, "uid": "u", "phase": phase})


def log(text: str) -> bytes:
    return event("2", "log", {"session": "s", "text": text})


async def test_a_turn_is_followed_to_its_end_without_what_belongs_to_others() -> None:
    pieces: Iterable[bytes] = [
        STREAM,
        event("1", "session", SESSION),
        of_turn("s-1", "Queued"),
        of_turn("s-0", "Running"),
        log("of s-0"),
        of_turn("s-0", "Succeeded"),
        of_turn("s-1", "Running"),
        log("of s-1"),
        event("3", "agent", {"session": "s", "turn": "s-1", "at": "", "event": 1}),
        of_turn("s-1", "Succeeded"),
        log("later"),
    ]

    def answer(request: Request) -> Answers:
        return reply(200, turn("Queued")) if request.path.endswith("/s-1") else b"".join(pieces)

    with Server(answer) as server:
        async with client(server.url) as berth, berth.session("s").turn("s-1").events(logs=True) as stream:
            seen: list[Any] = [(one.type, one.data.get("phase") or one.data.get("text")) async for one in stream]
    assert seen == [
        ("turn", "Queued"),
        ("turn", "Running"),
        ("log", "of s-1"),
        ("agent", None),
        ("turn", "Succeeded"),
    ]


async def test_the_end_of_a_turn_that_has_ended_is_told() -> None:
    def answer(request: Request) -> Answers:
        if request.path.endswith("/s-1"):
            return reply(200, turn("Succeeded"))
        return STREAM + of_turn("s-1", "Succeeded") if "last-event-id" in request.headers else server.hang(STREAM)

    with Server(answer) as server:
        async with client(server.url, timing=FAST) as berth, berth.session("s").turn("s-1").events() as stream:
            assert [one.type async for one in stream] == ["turn"]
            assert server.left.wait(60), "the first stream is closed"


def test_the_decoder_takes_line_ends_of_either_kind_comments_and_data_of_several_lines() -> None:
    raw = Decoder().feed(b": hello\r\nid: 1\r\nevent: a\r\ndata: x\r\ndata:y\r\n\r\nid: 2\n\ndata: z\n\n")
    assert [(one.id, one.type, one.data) for one in raw] == [("1", "a", "x\ny"), ("2", "message", "z")]
