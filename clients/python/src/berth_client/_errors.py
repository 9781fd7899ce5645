"""Errors that this package raises. Those of the HTTP API's codes are in `problems`. None has a token in its text."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import wire


class BerthError(Exception):
    """Base of all errors of this package. `idempotency_key`: key of the create that failed; a repeat with it makes nothing twice."""

    idempotency_key: str | None = None


class ConfigurationError(BerthError):
    """The options or the environment cannot be used. The text names which, and what to do."""


class ConnectionLost(BerthError):
    """The server gave no whole answer. `sent`: the request may have reached it."""

    def __init__(self, message: str, *, sent: bool, transient: bool = True) -> None:
        super().__init__(message)
        self.sent = sent
        self.transient = transient


class DeadlineExceeded(BerthError, TimeoutError):
    """The deadline of the call is over. What was begun goes on: only the waiting has ended. The cause is the last failure.

    `turn` is the turn that was waited for, if it is known: an `AsyncTurn` or a `Turn`.
    """

    turn: Any = None


class NotBerth(BerthError):
    """Something else than Berth's HTTP API answered: another server, or a proxy. `status`: the HTTP status."""

    def __init__(self, message: str, *, status: int, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ReleaseMismatch(BerthError):
    """An answer is not what this release reads; the text has both releases."""


class OutputTooLarge(BerthError):
    """An output, or another answer, has more bytes than the client takes into memory."""


class ContentDamaged(BerthError):
    """The bytes that came do not have the digest of the artifact."""


class ProblemError(BerthError):
    """A refusal of the HTTP API. `code` is stable, for programs; `problems` has a class for each.

    `fields` are those that are wrong, each with `field` and `message`. `retry_after` is in seconds.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int,
        fields: "list[wire.FieldError] | None" = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.status = status
        self.fields = fields or []
        self.retry_after = retry_after
        self.request_id = request_id


class TurnError(BerthError):
    """A turn that ended without success. `code` and `message` say why; `turn` is the turn as the API shows it."""

    def __init__(self, turn: "wire.Turn") -> None:
        status: Any = turn.get("status", {})
        error = status.get("error") or {}
        phase = status.get("phase", "unknown")
        self.code: str = error.get("code", phase)
        self.message: str = error.get("message", f"the turn is {phase}")
        self.turn = turn
        super().__init__(f"turn {turn['metadata']['name']} is {phase}: {self.code}: {self.message}")


class TurnFailed(TurnError):
    """The turn is Failed."""


class TurnTimedOut(TurnError):
    """The turn is TimedOut: it took longer than its own timeout."""


class TurnCancelled(TurnError):
    """The turn is Cancelled."""


TURN_ERRORS: dict[str, type[TurnError]] = {
    "Failed": TurnFailed,
    "TimedOut": TurnTimedOut,
    "Cancelled": TurnCancelled,
}
