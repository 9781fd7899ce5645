"""Client of Berth: agent sessions on Kubernetes, over its HTTP API.

from berth_client import Berth

with Berth() as berth:
    run = berth.run(class_="default", input={"question": "six by seven"})
    print(run.output)
"""

from . import problems, wire
from ._async._approval import AsyncApproval
from ._async._artifact import AsyncArtifact
from ._async._berth import AsyncBerth
from ._async._download import AsyncDownload
from ._async._events import AsyncEvents
from ._async._result import AsyncResult
from ._async._session import AsyncSession
from ._async._turn import AsyncTurn
from ._errors import (
    BerthError,
    ConfigurationError,
    ConnectionLost,
    ContentDamaged,
    DeadlineExceeded,
    NotBerth,
    OutputTooLarge,
    ProblemError,
    ReleaseMismatch,
    TurnCancelled,
    TurnError,
    TurnFailed,
    TurnTimedOut,
)
from ._event import Event, SessionEvent
from ._retry import Timing
from ._server import Token
from ._sync._approval import Approval
from ._sync._artifact import Artifact
from ._sync._berth import Berth
from ._sync._download import Download
from ._sync._events import Events
from ._sync._result import Result
from ._sync._session import Session
from ._sync._turn import Turn
from ._version import VERSION as __version__

__all__ = [
    "Approval",
    "Artifact",
    "AsyncApproval",
    "AsyncArtifact",
    "AsyncBerth",
    "AsyncDownload",
    "AsyncEvents",
    "AsyncResult",
    "AsyncSession",
    "AsyncTurn",
    "Berth",
    "BerthError",
    "ConfigurationError",
    "ConnectionLost",
    "ContentDamaged",
    "DeadlineExceeded",
    "Download",
    "Event",
    "Events",
    "NotBerth",
    "OutputTooLarge",
    "ProblemError",
    "ReleaseMismatch",
    "Result",
    "Session",
    "SessionEvent",
    "Timing",
    "Token",
    "Turn",
    "TurnCancelled",
    "TurnError",
    "TurnFailed",
    "TurnTimedOut",
    "__version__",
    "problems",
    "wire",
]
