"""Interpreter of scenarios for the Python client: an order on stdin, a line of JSON on stdout for each step, and one at the end.

The argument chooses the half of the client: `async`, where a cancelled task gives up, or `sync`, where KeyboardInterrupt does.
"""

import asyncio
import inspect
import json
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from decimal import Decimal
from pathlib import Path

from berth_client import AsyncBerth, Berth, BerthError, Timing

LEAVE = 2.0
"""Seconds that tasks have to end."""
ASK_AGAIN = 0.2
"""Seconds between reads until one is refused."""
ENDED = ("Succeeded", "Failed", "Cancelled", "TimedOut")


async def of(value):
    """Returns a result of either half."""
    return await value if inspect.isawaitable(value) else value


async def each(values):
    """Iterates over what either half iterates over, and closes it."""
    if hasattr(values, "__aenter__"):
        async with values:
            async for value in values:
                yield value
    elif hasattr(values, "__anext__"):
        async with aclosing(values):
            async for value in values:
                yield value
    else:
        with values if hasattr(values, "__enter__") else closing(values):
            for value in values:
                yield value


def shown(value):
    """Replaces each number by its digits, as both languages write them."""
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items()}
    return value


def shown_result(result):
    return {"phase": result.phase, "output": shown(result.output), "text": result.text()}


class Steps:
    """What each kind of step does; each returns what is printed, and what is saved."""

    def __init__(self, berth):
        self.berth = berth
        self.saved = {}

    async def write(self, _, file, text):
        Path(file).write_text(text)
        return None, None

    async def run(self, _, input, key=None, labels=None):
        run = await of(self.berth.run(input=input, idempotency_key=key, labels=labels))
        return shown_result(run), run

    async def runs(self, _, count, input, labels, **given):
        def one(n):
            marked = {**input, "mark": f"{input['mark']}-{n}"}
            return self.berth.run(class_=given.get("class"), input=marked, labels=labels)

        if isinstance(self.berth, Berth):
            with ThreadPoolExecutor(count) as pool:
                runs = list(pool.map(one, range(count)))
        else:
            runs = await asyncio.gather(*(one(n) for n in range(count)))
        return Counter(run.phase for run in runs), None

    async def session(self, _, name):
        return None, self.berth.session(name)

    async def session_create(self, _, name=None, key=None, labels=None, **given):
        create = self.berth.sessions.create
        session = await of(create(class_=given.get("class"), name=name, idempotency_key=key, labels=labels))
        return {"name": session.name}, session

    async def session_get(self, session):
        read = await of(session.get())
        phase = read.get("status", {}).get("phase")
        return {"name": read["metadata"]["name"], "suspend": read["spec"].get("suspend"), "phase": phase}, None

    async def session_refused(self, session):
        while True:
            await of(session.get())
            await self._pause(ASK_AGAIN)

    async def session_suspend(self, session, hold=False):
        return await of(session.suspend(hold=hold)), None

    async def session_resume(self, session):
        return await of(session.resume()), None

    async def session_restart(self, session):
        return await of(session.restart()), None

    async def session_touch(self, session):
        return await of(session.touch()), None

    async def session_delete(self, session):
        return await of(session.delete()), None

    async def session_follow(self, session, logs=False, after=None, until=None, stopMs=0):
        return await self._followed(session.events(logs=logs, after=self.saved.get(after, after)), until, stopMs / 1000)

    async def session_approvals(self, session):
        approvals = [approval async for approval in each(session.approvals())]
        return [{"prompt": one.prompt, "payload": one.payload} for one in approvals], approvals[0] if approvals else None

    async def sessions_list(self, _, labelSelector):
        listed = each(self.berth.sessions.list(label_selector=labelSelector))
        return [session.name async for session in listed], None

    async def turn_create(self, session, input, key=None, timeout=None):
        spec = None if timeout is None else {"timeout": timeout}
        turn = await of(session.turns.create(input=input, spec=spec, idempotency_key=key))
        return {"name": turn.name}, turn

    async def turn(self, session, name):
        return None, session.turn(name)

    async def turn_result(self, turn):
        return shown_result(await of(turn.result())), None

    async def turn_cancel(self, turn):
        return await of(turn.cancel()), None

    async def turn_log(self, turn):
        return await of(turn.log()), None

    async def turn_follow(self, turn, until=None):
        return await self._followed(turn.events(), until)

    async def turn_artifacts(self, turn, name=None):
        artifacts = await of(turn.artifacts())
        return [one.name for one in artifacts], next((one for one in artifacts if one.name == name), None)

    async def artifact_save(self, artifact, to):
        return await of(artifact.save(to)), None

    async def approve(self, approval, note=None):
        await of(approval.approve(note=note))
        return None, None

    async def deny(self, approval, note=None):
        await of(approval.deny(note=note))
        return None, None

    async def _pause(self, seconds):
        if isinstance(self.berth, Berth):
            time.sleep(seconds)
        else:
            await asyncio.sleep(seconds)

    async def _followed(self, events, until, stop=0.0):
        """Follows until as many events of each kind have come as `until` says, or to the end of all events.

        Stops for `stop` seconds at the first one of an agent.
        """
        seen = []
        left = dict(until or {})
        last = ""
        # Left by a break, an iterator has to be closed by whoever made it.
        async with aclosing(each(events)) as followed:
            async for event in followed:
                seen.append({"id": event.id, "type": event.type, "data": event.data})
                last = event.id or last
                if stop and event.type == "agent":
                    await self._pause(stop)
                    stop = 0.0
                kind = "end" if event.type == "turn" and event.data["phase"] in ENDED else event.type
                if kind in left:
                    left[kind] -= 1
                if left and all(count <= 0 for count in left.values()):
                    break
        return seen, last


def say(line):
    print(json.dumps(line, default=str), flush=True)


def shown_error(error):
    return {"class": type(error).__name__, "code": getattr(error, "code", None), "message": str(error), "isOwn": isinstance(error, BerthError)}


async def perform(steps, order):
    for number, step in enumerate(order["steps"]):
        try:
            on = steps.saved.get(step["on"]) if "on" in step else None
            value, made = await getattr(steps, step["do"].replace(".", "_"))(on, **step.get("with", {}))
            if "save" in step:
                steps.saved[step["save"]] = made
            say({"step": number, "value": value})
        except (asyncio.CancelledError, KeyboardInterrupt):
            say({"step": number, "aborted": True})
            return
        except Exception as error:
            say({"step": number, "error": shown_error(error)})
            if not step.get("fails"):
                return


def options(order):
    token = order["token"]
    seconds = {name: value / 1000 for name, value in order["timing"].items()}
    names = {
        "attemptMs": "answer",
        "silenceMs": "stream_silence",
        "waitMs": "wait",
        "baseMs": "retry_first",
        "maxMs": "retry_most",
    }
    timing = Timing(**{names[name]: value for name, value in seconds.items()})
    return {
        "server": order["server"],
        "token": token if isinstance(token, str) else Path(token["file"]),
        "namespace": "default",
        "timing": timing,
        "deadline": order["deadlineMs"] / 1000,
    }


async def main_async(order):
    task = asyncio.current_task()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    async with AsyncBerth(**options(order)) as berth:
        await perform(Steps(berth), order)
    # The HTTP library leaves its own iterators to the loop, which closes them a little later.
    end = time.monotonic() + LEAVE
    while (left := [str(one) for one in asyncio.all_tasks() if one is not task]) and time.monotonic() < end:
        await asyncio.sleep(0)
    return left


def main_sync(order):
    with Berth(**options(order)) as berth:
        # Nothing in this half waits for a loop: the coroutine runs through at once.
        work = perform(Steps(berth), order)
        try:
            work.send(None)
        except StopIteration:
            pass
    return []


if __name__ == "__main__":
    # Numbers with every digit, also those that are longer than Python reads by itself.
    sys.set_int_max_str_digits(0)
    given = json.loads(sys.stdin.read())
    sys.set_int_max_str_digits(4300)
    left = asyncio.run(main_async(given)) if sys.argv[1] == "async" else main_sync(given)
    left += [str(thread) for thread in threading.enumerate() if thread is not threading.main_thread()]
    say({"end": {"left": left}})
