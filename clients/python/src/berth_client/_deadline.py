import time

from ._errors import DeadlineExceeded


class Deadline:
    """End of a call's time. `seconds` may be infinite. Raises ValueError where they are not more than 0."""

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise ValueError(f"deadline must be more than 0 seconds, not {seconds}")
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._end - time.monotonic())

    def exceeded(self, what: str, last: BaseException | None = None) -> DeadlineExceeded:
        why = f"; the last failure: {last}" if last is not None and str(last) else ""
        error = DeadlineExceeded(f"{what}: not done within {self.seconds:g} s{why}")
        error.__cause__ = last
        return error
