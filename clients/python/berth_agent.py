"""Events, results and approval requests of an agent, sent to Berth's runner over BERTH_SOCKET. One file, no dependencies, Python 3.7 or later.

    import berth_agent

    berth_agent.event({"step": "tests", "done": 3, "of": 10})
    decision = berth_agent.approve("Delete the branch?", {"branch": "old"})
    if decision["decision"] == "Approve":
        berth_agent.result({"deleted": True})

The protocol is described in docs/agents/socket.md.
"""

import json
import os
import socket
from typing import Any, Dict, Optional

__all__ = ["AgentError", "approve", "error", "event", "result", "touch"]


class AgentError(Exception):
    """The runner refused a request, or cannot be reached. `code` is stable, for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


def event(value: Any) -> None:
    """Tells how far the work is: any JSON value of at most 16 KiB. Those who follow the session see it at once."""
    _ask({"do": "event", "event": value})


def approve(prompt: str, payload: Any = None) -> Dict[str, Any]:
    """Asks a person and waits for the decision. `payload`: further data of the question, any JSON value of at most 16 KiB.

    Returns {"requestId", "decision": "Approve" or "Deny", and where given "response", "note"}. Keep in
    BERTH_STATE_DIR what must survive the wait: the process may be stopped meanwhile, and another one gets the decision with its request.
    """
    request: Dict[str, Any] = {"do": "approve", "prompt": prompt}
    if payload is not None:
        request["payload"] = payload
    approval: Dict[str, Any] = _ask(request)["approval"]
    return approval


def result(output: Any, turn_count: Optional[int] = None, metadata: Any = None) -> None:
    """Sets the output of the turn, any JSON value, whatever is printed. The last call counts.

    `turn_count`: how many steps the agent took. `metadata`: any JSON value of at most 4 KiB, shown in the turn's status.
    """
    envelope: Dict[str, Any] = {"status": "success", "output": output}
    if turn_count is not None:
        envelope["turn_count"] = turn_count
    if metadata is not None:
        envelope["metadata"] = metadata
    _ask({"do": "result", "result": envelope})


def error(message: str) -> None:
    """Ends the turn as failed with this message once the process has ended."""
    _ask({"do": "result", "result": {"status": "error", "error": message}})


def touch() -> None:
    """Counts as activity: an active session keeps its pod."""
    _ask({"do": "touch"})


def _ask(request: Dict[str, Any]) -> Dict[str, Any]:
    path = os.environ.get("BERTH_SOCKET")
    if not path:
        raise AgentError("NoRunner", "BERTH_SOCKET is not set: this is no session of Berth")
    turn = os.environ.get("BERTH_TURN")
    if turn:
        # A process that outlives its turn tells nothing of a later one.
        request = {**request, "turn": turn}
    line = json.dumps(request, separators=(",", ":")).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(path)
            try:
                connection.sendall(line)
            except (BrokenPipeError, ConnectionResetError):
                pass  # Refused before its end: the reply says why.
            with connection.makefile("rb") as replies:
                answer = replies.readline()
    except OSError as problem:
        raise AgentError("NoRunner", f"the runner does not answer at {path}: {problem}") from problem
    if not answer.endswith(b"\n"):
        raise AgentError("NoRunner", "the runner closed the connection without an answer")
    reply: Dict[str, Any] = json.loads(answer)
    if not reply["ok"]:
        raise AgentError(reply["error"]["code"], reply["error"]["message"])
    return reply
