"""The client and a server with a controller: BERTH_SERVER and BERTH_TOKEN_FILE name it, AGENT is the path of agent.py."""

import os
import secrets
from pathlib import Path
from typing import Any

import pytest
from berth_client import AsyncBerth, TurnCancelled, TurnFailed, problems, wire

pytestmark = pytest.mark.anyio
AGENT: wire.SessionCreateSpec = {"agent": {"command": ["python3", os.environ["AGENT"]]}}
"""What the agent does follows from its input: see agent.py."""


async def test_a_run_returns_every_digit() -> None:
    async with AsyncBerth() as berth:
        for text, value in [('{"n":9007199254740993}', {"n": 2**53 + 1}), ("null", None), ('"\U0001f600"', "😀")]:
            run = await berth.run(input={"print": text}, spec=AGENT)
            assert (run.output, run.text(), run.phase) == (value, text, "Succeeded")
        digits = "7" * 5000
        run = await berth.run(input={"print": digits}, spec=AGENT)
        assert str(run.output) == run.text() == digits
        assert berth.server_release is None or berth.server_release[0].isdigit()


async def test_a_key_makes_one_run_of_two_calls_and_is_refused_for_another_input() -> None:
    key = secrets.token_hex(8)
    async with AsyncBerth() as berth:
        runs = [await berth.run(input={"print": "1"}, spec=AGENT, idempotency_key=key) for _ in range(2)]
        assert runs[0].session.name == runs[1].session.name
        with pytest.raises(problems.IdempotencyKeyReused):
            await berth.run(input={"print": "2"}, spec=AGENT, idempotency_key=key)


async def test_a_turn_that_fails_or_is_cancelled_is_an_error() -> None:
    async with AsyncBerth() as berth:
        with pytest.raises(TurnFailed, match="no luck"):
            await berth.run(input={"fail": "no luck"}, spec=AGENT)
        with pytest.raises(problems.ClassNotFound):
            await berth.run(class_="none", input=1)
        session = await berth.sessions.create(spec=AGENT)
        turn = await session.turns.create(input={"sleep": 60})
        await turn.cancel()
        with pytest.raises(TurnCancelled):
            await turn.result()
        await session.delete()


async def test_a_session_is_followed_and_its_files_are_saved(tmp_path: Path) -> None:
    async with AsyncBerth() as berth:
        labels = {"made-for": secrets.token_hex(4)}
        session = await berth.sessions.create(spec=AGENT, labels=labels)
        turn = await session.turns.create(input={"events": 3, "file": "report/a.txt", "print": "[1]"})
        said: list[Any] = []
        printed: list[str] = []
        async with session.events(logs=True, after="0.0.0.0") as events:
            async for event in events:
                if event.type == "agent":
                    said.append(event.data["event"])
                if event.type == "log":
                    printed.append(event.data["text"])
                if event.type == "turn" and event.data["phase"] == "Succeeded":
                    break
        # The last of both and the end come by separate ways.
        assert said == [{"n": 0}, {"n": 1}, {"n": 2}][: len(said)]
        assert printed == ["begun", "line 0", "line 1", "line 2"][: len(printed)]
        assert (await turn.result()).output == [1]
        assert "line 2\n" in await turn.log()
        [artifact] = await turn.artifacts()
        assert artifact.name == "report/a.txt"
        await artifact.save(tmp_path / "a.txt")
        assert (tmp_path / "a.txt").read_text() == "content" * 1000
        async with turn.events() as events:
            assert [event.type async for event in events][-1] == "turn"
        listed = [one.name async for one in berth.sessions.list(label_selector=f"made-for={labels['made-for']}")]
        assert listed == [session.name]
        assert [one.name async for one in session.turns.list()] == [turn.name]
        await session.suspend()
        await session.resume()
        await session.touch()
        await session.delete()


async def test_a_question_is_found_and_approved_and_the_agent_goes_on() -> None:
    async with AsyncBerth() as berth:
        session = await berth.sessions.create(spec=AGENT)
        turn = await session.turns.create(input={"ask": "Really?", "print": "1"})
        await turn.wait()
        assert turn.phase == "AwaitingApproval"
        [question] = [one async for one in session.approvals()]
        assert (question.prompt, question.payload) == ("Really?", {"branch": "old"})
        await question.approve(response={"keep": 1}, note="fine")
        assert (await turn.result()).output == {"decision": "Approve", "keep": 1}
        with pytest.raises(problems.AlreadyDecided):
            await question.deny()
        await session.delete()
