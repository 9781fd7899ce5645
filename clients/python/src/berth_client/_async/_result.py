from typing import TYPE_CHECKING, Any

from .. import _json

if TYPE_CHECKING:
    from ._session import AsyncSession
    from ._turn import AsyncTurn


class AsyncResult:
    """What a turn that succeeded has returned."""

    phase = "Succeeded"

    def __init__(self, session: "AsyncSession", turn: "AsyncTurn", text: str) -> None:
        self.session = session
        self.turn = turn
        self._text = text
        self.output: Any = _json.parse(text)
        """Integers are int; other numbers float, or Decimal where a float does not hold them."""

    def text(self) -> str:
        """Returns the output as JSON, with every digit that the agent wrote."""
        return self._text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of turn {self.turn.name}: {self.phase}>"
