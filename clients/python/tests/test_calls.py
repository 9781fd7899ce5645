"""Calls: retries, keys, deadlines, tokens, and servers that are none of Berth's."""

import base64
import json
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from berth_client import (
    AsyncApproval,
    ConnectionLost,
    DeadlineExceeded,
    NotBerth,
    OutputTooLarge,
    ProblemError,
    ReleaseMismatch,
    TurnCancelled,
    TurnFailed,
    TurnTimedOut,
    __version__,
    problems,
)

from .client import TOKEN, client
from .server import Answers, Request, Server, problem, reply, run, session, turn

pytestmark = pytest.mark.anyio
CUT = b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"


def first(*answers: Answers) -> Callable[[Request], Answers]:
    """Answers the requests one after the other; the last answer is repeated."""
    return lambda request: answers[min(request.number, len(answers) - 1)]


@pytest.mark.parametrize(
    "failure",
    [
        b"",
        b"HTTP/1.1 200",
        CUT,
        problem(429, "CallerLimit"),
        problem(503, "Overloaded", retry_after="0"),
        problem(408, "RequestTimeout"),
        reply(502, b"<html>", content_type="text/html"),
        reply(504, b"", content_type="text/html"),
    ],
)
async def test_a_create_is_sent_again_with_the_same_key_and_body(failure: bytes) -> None:
    with Server(first(failure, failure, run("Succeeded", output=6))) as server:
        async with client(server.url) as berth:
            result = await berth.run(input={"n": 1})
    assert result.output == 6
    assert len(server.requests) == 3
    assert len({(request.headers["idempotency-key"], request.body) for request in server.requests}) == 1


async def test_a_key_of_the_caller_is_sent_and_two_runs_without_one_have_two() -> None:
    with Server(lambda request: run("Succeeded", output=None)) as server:
        async with client(server.url) as berth:
            await berth.run(input=1, idempotency_key="mine")
            await berth.run(input=1)
            await berth.run(input=1)
    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert keys[0] == "mine" and len(set(keys)) == 3


async def test_retry_after_is_waited_out_and_not_beyond_the_deadline() -> None:
    with Server(lambda request: problem(429, "TooManyRequests", retry_after="60")) as server:
        async with client(server.url) as berth:
            with pytest.raises(DeadlineExceeded, match="not done within 5 s.*it is TooManyRequests") as caught:
                await berth.run(input=1, deadline=5)
    assert len(server.requests) == 1
    assert isinstance(caught.value.__cause__, problems.TooManyRequests)
    assert caught.value.idempotency_key == server.requests[0].headers["idempotency-key"]


async def test_a_server_that_stays_busy_is_asked_until_the_deadline() -> None:
    with Server(lambda request: problem(503, "Overloaded")) as server:
        async with client(server.url) as berth:
            with pytest.raises(DeadlineExceeded, match="not done within 0.2 s"):
                await berth.session("s").get(deadline=0.2)


@pytest.mark.parametrize("where", ["head", "body"])
async def test_a_server_that_stands_still_is_given_up_at_the_deadline(where: str) -> None:
    begun: tuple[bytes, ...] = (CUT,) if where == "body" else ()
    with Server(lambda request: server.hang(*begun)) as server:
        async with client(server.url) as berth:
            with pytest.raises(DeadlineExceeded):
                await berth.session("s").get(deadline=2)
        assert server.left.wait(60)


@pytest.mark.parametrize("code", ["StoredDataMissing", "NotFound", "Internal", "CodeOfALaterRelease"])
async def test_a_refusal_is_an_error_of_its_code_and_not_repeated(code: str) -> None:
    status = {"StoredDataMissing": 502, "NotFound": 404, "Internal": 500}.get(code, 422)
    fields = {"code": code, "detail": "why", "errors": [{"field": "spec.input", "message": "is wrong"}]}
    answer = reply(status, fields, content_type="application/problem+json", x_request_id="42")
    with Server(lambda request: answer) as server:
        async with client(server.url) as berth:
            with pytest.raises(ProblemError) as caught:
                await berth.session("s").get()
    error = caught.value
    assert type(error) is problems.BY_CODE.get(code, ProblemError)
    assert (error.code, error.detail, error.status, error.request_id) == (code, "why", status, "42")
    assert error.fields == fields["errors"] and str(error) == f"{code}: why"
    assert len(server.requests) == 1


async def test_a_wrong_address_is_told_long_before_the_deadline() -> None:
    with Server(lambda request: b"") as server:
        pass
    async with client(server.url, deadline=3600) as berth:
        with pytest.raises(ConnectionLost, match=server.url):
            await berth.session("s").get()


async def test_a_page_of_a_proxy_is_no_answer() -> None:
    with Server(lambda request: reply(200, b"<html>", content_type="text/html")) as server:
        async with client(server.url) as berth:
            with pytest.raises(NotBerth, match="answered 200 with text/html"):
                await berth.session("s").get()


async def test_a_redirect_is_told_and_the_other_host_gets_nothing() -> None:
    with Server(lambda request: reply(200, session())) as other:
        with Server(lambda request: reply(302, location=f"{other.url}/x?secret")) as server:
            async with client(server.url) as berth:
                with pytest.raises(NotBerth, match=f"redirects to {other.url}/x, where"):
                    await berth.session("s").get()
    assert other.requests == []


async def test_an_answer_of_another_form_names_both_releases() -> None:
    with Server(lambda request: reply(200, {"kind": "Session"})) as server:
        async with client(server.url) as berth:
            with pytest.raises(ReleaseMismatch, match=f"release 9.9.9, berth-client of release {__version__}"):
                await berth.session("s").get()
            assert berth.server_release == "9.9.9"


async def test_a_phase_of_a_later_release_is_taken() -> None:
    with Server(lambda request: reply(200, turn("Paused"))) as server:
        async with client(server.url) as berth:
            handle = berth.session("s").turn("s-1")
            await handle.get()
            assert handle.phase == "Paused"
            with pytest.raises(DeadlineExceeded) as caught:
                await handle.result(deadline=0.1)
    assert caught.value.turn is handle


async def test_an_answer_beyond_the_limit_is_not_read() -> None:
    with Server(lambda request: reply(200, b" " * 10_000)) as server:
        async with client(server.url, max_answer=1000) as berth:
            with pytest.raises(OutputTooLarge, match="more than 1000 bytes"):
                await berth.session("s").get()


@pytest.mark.parametrize(
    ("phase", "error"), [("Failed", TurnFailed), ("TimedOut", TurnTimedOut), ("Cancelled", TurnCancelled)]
)
async def test_a_turn_without_success_is_an_error_of_its_phase(phase: str, error: type[TurnFailed]) -> None:
    ended = turn(phase, error={"code": "AgentFailed", "message": "no luck"})
    with Server(lambda request: run(phase, turn=ended) if request.method == "POST" else reply(200, ended)) as server:
        async with client(server.url) as berth:
            with pytest.raises(error, match="no luck") as caught:
                await berth.run(input=1)
            assert (caught.value.code, caught.value.message) == ("AgentFailed", "no luck")
            with pytest.raises(error):
                await berth.session("s").turn("s-1").result()


async def test_a_run_without_a_turn_yet_is_asked_for_again_with_its_key_and_then_by_its_turn() -> None:
    untaken = reply(202, {"session": session(), "phase": "Queued"})
    answers = first(
        untaken,
        untaken,
        run("Running"),
        reply(200, turn("Running")),
        reply(200, turn("Succeeded", outputRef="x")),
        reply(200, b"7.0"),
    )
    with Server(answers) as server:
        async with client(server.url) as berth:
            result = await berth.run(input=1)
    assert (result.output, result.text(), result.turn.name) == (7.0, "7.0", "s-1")
    assert [request.path.rsplit("/", 1)[1] for request in server.requests] == ["runs", "runs", "runs", "s-1", "s-1", "output"]
    assert len({request.headers["idempotency-key"] for request in server.requests[:3]}) == 1


async def test_a_run_that_is_not_taken_up_in_time_has_the_key_by_which_it_is_found_again() -> None:
    with Server(lambda request: reply(202, {"session": session(), "phase": "Queued"})) as server:
        async with client(server.url) as berth:
            with pytest.raises(DeadlineExceeded) as caught:
                await berth.run(input=1, idempotency_key="mine", deadline=0.3)
    assert caught.value.idempotency_key == "mine"


async def test_a_wait_for_the_result_names_the_question_that_it_is_not_for() -> None:
    asks = turn("AwaitingApproval", approval={"requestId": "1", "prompt": "Really?", "payload": {"n": 1}})
    with Server(first(*[reply(200, asks)] * 3, reply(200, turn("Succeeded", output=1)))) as server:
        async with client(server.url) as berth:
            handle = berth.session("s").turn("s-1")
            await handle.wait()
            approval = handle.asks()
            assert approval and (approval.request_id, approval.prompt, approval.payload) == ("1", "Really?", {"n": 1})
            assert (await handle.result()).output == 1
    assert ["requestId=1" in request.target for request in server.requests] == [False, False, True, True]


async def test_each_question_is_handed_over_once_and_the_wait_goes_on() -> None:
    first_question = turn("AwaitingApproval", approval={"requestId": "1", "prompt": "One?"})
    second_question = turn("AwaitingApproval", approval={"requestId": "2", "prompt": "Two?"})
    decided = turn("AwaitingApproval", approval={"requestId": "2", "prompt": "Two?", "decided": {"decision": "Deny"}})
    states = [turn("Running"), first_question, first_question, second_question, decided, turn("Succeeded", output=1)]
    asked: list[str | None] = []

    async def decide(question: AsyncApproval) -> None:
        asked.append(question.prompt)

    def answer(request: Request) -> Answers:
        return (
            run("Queued", turn=turn("Queued")) if request.method == "POST" else reply(200, states[request.number - 1])
        )

    with Server(answer) as server:
        async with client(server.url) as berth:
            assert (await berth.run(input=1, on_approval=decide)).output == 1
    assert asked == ["One?", "Two?"]


async def test_an_output_is_read_in_pieces() -> None:
    content = b"[" + b"1," * 100_000 + b"1]"
    with Server(lambda request: reply(200, content) if request.number else problem(404, "NoOutput")) as server:
        async with client(server.url, max_answer=1000) as berth:
            handle = berth.session("s").turn("s-1")
            with pytest.raises(problems.NoOutput):
                async with handle.stream_output():
                    pass
            async with handle.stream_output() as pieces:
                assert b"".join([piece async for piece in pieces]) == content


@pytest.mark.parametrize(("status", "code"), [(404, "NotFound"), (409, "UIDMismatch")])
async def test_a_delete_whose_answer_was_lost_succeeds_where_the_object_is_gone_and_one_that_was_not_fails(
    status: int, code: str
) -> None:
    with Server(first(b"", problem(status, code))) as server:
        async with client(server.url) as berth:
            await berth.session("s").delete()
            with pytest.raises(ProblemError) as caught:
                await berth.session("s").delete()
            assert caught.value.code == code


async def test_calls_name_the_uid_of_what_was_read() -> None:
    with Server(lambda request: reply(200, session()) if request.method != "DELETE" else reply(204)) as server:
        async with client(server.url) as berth:
            handle = await berth.sessions.get("s")
            await handle.suspend()
            await handle.resume()
            await handle.restart()
            await handle.touch()
            await handle.delete()
    assert {request.target.split("?")[1] for request in server.requests[1:]} == {"uid=session-uid"}


async def test_another_session_of_the_name_is_not_taken_for_the_one_that_was_read() -> None:
    with Server(first(reply(200, session()), reply(200, session(uid="other")))) as server:
        async with client(server.url) as berth:
            handle = await berth.sessions.get("s")
            with pytest.raises(problems.UIDMismatch, match="other"):
                await handle.get()


async def test_a_list_goes_on_after_an_expired_page_without_repeats() -> None:
    def answer(request: Request) -> Answers:
        if "continue=expired" in request.target:
            return problem(410, "ContinueExpired")
        if "continue=two" in request.target:
            return reply(200, {"items": [session("c")]})
        token = "expired" if request.number == 0 else "two"
        return reply(200, {"items": [session("a"), session("b")], "continue": token})

    with Server(answer) as server:
        async with client(server.url) as berth:
            assert [one.name async for one in berth.sessions.list()] == ["a", "b", "c"]


async def test_a_renewed_token_is_read_again_and_one_that_is_refused_is_told(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")

    def answer(request: Request) -> Answers:
        if request.headers["authorization"] == "Bearer new":
            return reply(200, session())
        file.write_text("new" if request.number == 0 else "other")
        return problem(401, "Unauthenticated")

    with Server(answer) as server:
        async with client(server.url, token=file) as berth:
            await berth.session("s").get()
            file.write_text("bad")
            said = rf"The token was read again, and is refused. It is from the file {file}."
            with pytest.raises(problems.Unauthenticated, match=said):
                await berth.session("s").get()
    assert [request.headers["authorization"][7:] for request in server.requests] == ["old", "new", "bad", "other"]


async def test_a_token_that_is_refused_says_when_it_expired() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 1_700_000_000}).encode()).decode().rstrip("=")
    with Server(lambda request: problem(401, "Unauthenticated")) as server:
        async with client(server.url, token=lambda: f"head.{claims}.seal") as berth:
            said = r"It is from the function token, and expired at 2023-11-14T22:13:20\+00:00"
            with pytest.raises(problems.Unauthenticated, match=said):
                await berth.session("s").get()
        async with client(server.url, token="no.token.of-a-cluster") as berth:
            with pytest.raises(problems.Unauthenticated, match="It is from the option token.$"):
                await berth.session("s").get()


async def test_a_function_that_gives_the_token_may_fail() -> None:
    def fails() -> str:
        raise LookupError("no token today")

    with Server(lambda request: b"") as server:
        async with client(server.url, token=fails) as berth:
            with pytest.raises(LookupError, match="no token today"):
                await berth.session("s").get()
    assert server.requests == []


async def test_the_token_is_in_no_text() -> None:
    texts: list[str] = []
    with Server(lambda request: problem(401, "Unauthenticated") if request.number else reply(200, {})) as server:
        async with client(server.url) as berth:
            for _ in range(2):
                try:
                    await berth.session("s").get()
                except Exception as error:
                    texts += [repr(error), *traceback.format_exception(error)]
            texts += [repr(berth), repr(berth.session("s")), repr(berth.__dict__), repr(berth._calls.server)]
        async with client(server.url) as berth:
            pass
    try:
        async with client("http://127.0.0.1:1") as berth:
            await berth.session("s").get()
    except ConnectionLost as error:
        texts += traceback.format_exception(error)
    assert len(texts) > 10 and TOKEN not in "".join(texts)
