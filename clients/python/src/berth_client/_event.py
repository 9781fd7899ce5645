from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from . import wire

K = TypeVar("K", bound=str)
D = TypeVar("D")


@dataclass(frozen=True)
class Event(Generic[K, D]):
    """An event of a session. `id`: where a later `events(after=id)` goes on."""

    id: str
    type: K
    data: D


SessionEvent: TypeAlias = (
    Event[Literal["session"], wire.SessionEvent]
    | Event[Literal["turn"], wire.TurnEvent]
    | Event[Literal["approval"], wire.ApprovalEvent]
    | Event[Literal["usage"], wire.UsageEvent]
    | Event[Literal["artifacts"], wire.ArtifactsEvent]
    | Event[Literal["agent"], wire.AgentEvent]
    | Event[Literal["log"], wire.LogEvent]
    | Event[Literal["dropped"], wire.DroppedEvent]
    | Event[Literal["deleted"], wire.DeletedEvent]
    | Event[Literal["later"], Any]
)
"""Events by type. A later release of the server may send others."""
