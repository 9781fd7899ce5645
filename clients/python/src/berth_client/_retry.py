"""Which failures are tried again, and when."""

import random
from dataclasses import dataclass

from ._errors import BerthError, ConnectionLost, NotBerth, ProblemError

_TRANSIENT = frozenset({408, 429, 502, 503, 504})
"""Statuses of a proxy, or of a server that is busy or not there for a while."""
_TRANSIENT_CODES = frozenset({408, 429, 503, 504})
"""Statuses of Berth's own refusals. Its 502 speak of stored data or of the session, and stay as they are."""
_SPREAD = 0.25
"""Seconds over which clients spread that were asked to come back at the same second."""


@dataclass(frozen=True)
class Timing:
    """Times of the client, in seconds."""

    connect: float = 10.0
    """Limit of a connection's opening."""
    answer: float = 30.0
    """Silence after which an answer counts as lost, beside the time that the server was asked to wait."""
    first_contact: float = 10.0
    """Limit of tries to reach a server that has never answered: its address may be wrong."""
    wait: float = 30.0
    """Time that the server is asked to wait for the end of a turn, at most 60. Then the client asks again."""
    stream_silence: float = 40.0
    """Silence after which a stream of events counts as lost; the server sends something every 15."""
    retry_first: float = 0.1
    """Pause before the second try, about; it doubles with each."""
    retry_most: float = 5.0


def is_transient(error: BerthError) -> bool:
    """Reports whether the same request may succeed a little later. All requests of this package can be sent twice."""
    if isinstance(error, ConnectionLost):
        return error.transient
    if isinstance(error, NotBerth):
        return error.status in _TRANSIENT
    return isinstance(error, ProblemError) and error.status in _TRANSIENT_CODES


def pause(error: BerthError | None, failures: int, timing: Timing) -> float:
    """Seconds to wait after this many failures in a row."""
    asked = error.retry_after if isinstance(error, (ProblemError, NotBerth)) else None
    if asked is not None:
        return asked + random.random() * _SPREAD
    longest = min(timing.retry_most, timing.retry_first * 2.0 ** min(failures - 1, 30))
    return longest * (0.5 + random.random() / 2)
