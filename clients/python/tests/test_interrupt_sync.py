"""What ends a call of the sync half: Ctrl-C, and another thread."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from berth_client import Berth

from .client import FAST, TOKEN
from .server import STREAM, Answers, Request, Server, problem
from .test_artifacts import CONTENT, head, listing


def berth_of(server: Server) -> Berth:
    return Berth(server.url, token=TOKEN, timing=FAST, namespace="default", deadline=100)


def interrupt_once(event: Callable[[], object]) -> threading.Thread:
    main = threading.main_thread().ident

    def wait() -> None:
        event()
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_ctrl_c_ends_a_call_that_reads() -> None:
    with Server(lambda request: server.hang(STREAM)) as server, berth_of(server) as berth:
        thread = interrupt_once(lambda: server.hung.wait(60))
        with pytest.raises(KeyboardInterrupt), berth.session("s").events() as events:
            next(events)
        thread.join()
        assert server.left.wait(60)


def test_ctrl_c_ends_a_call_that_waits_to_try_again() -> None:
    asked = threading.Event()

    def answer(request: Request) -> Answers:
        asked.set()
        return problem(503, "Overloaded", retry_after="60")

    with Server(answer) as server, berth_of(server) as berth:
        thread = interrupt_once(lambda: asked.wait(60))
        with pytest.raises(KeyboardInterrupt):
            berth.run(input=1)
        thread.join()


def test_ctrl_c_leaves_no_partial_file(tmp_path: Path) -> None:
    def answer(request: Request) -> Answers:
        return listing() if request.path.endswith("/artifacts") else server.hang(head(200, len(CONTENT)), CONTENT[:100])

    with Server(answer) as server, berth_of(server) as berth:
        [one] = berth.session("s").turn("s-1").artifacts()
        thread = interrupt_once(lambda: server.hung.wait(60))
        with pytest.raises(KeyboardInterrupt):
            one.save(tmp_path / "a")
        thread.join()
        assert list(tmp_path.iterdir()) == []
        assert server.left.wait(60)


def test_another_thread_ends_an_iteration() -> None:
    with Server(lambda request: server.hang(STREAM)) as server, berth_of(server) as berth:
        with berth.session("s").events() as events:
            thread = threading.Thread(target=lambda: (server.hung.wait(60), events.close()))
            thread.start()
            assert list(events) == []
            thread.join()
        assert server.left.wait(60)
