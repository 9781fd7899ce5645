"""An answer of the server, and the error that it stands for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from . import _json
from ._errors import BerthError, NotBerth, ProblemError, ReleaseMismatch
from ._version import VERSION
from .problems import BY_CODE, UIDMismatch

T = TypeVar("T")
REDIRECTS = range(300, 400)


@dataclass(frozen=True)
class Answer:
    request: str
    """Method and URL."""
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def release(self) -> str | None:
        """Release of the server."""
        return self.headers.get("berth-version")

    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """Returns the content with exact numbers. Raises NotBerth, or ReleaseMismatch where it cannot be read."""
        if "json" not in self.headers.get("content-type", ""):
            raise not_berth(self)
        return self.read(lambda: _json.parse(self.body.decode("utf-8")))

    def read(self, part: Callable[[], T]) -> T:
        """Returns a part of the content. Raises ReleaseMismatch where the content has another form."""
        try:
            return part()
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise ReleaseMismatch(
                f"{self.request}: the answer cannot be read ({type(error).__name__}: {error}). The server is of release "
                f"{self.release or 'unknown'}, berth-client of release {VERSION}: take a client of the server's release"
            ) from error


def error_of(answer: Answer) -> BerthError:
    """Returns the error that an answer other than success stands for."""
    retry_after = _retry_after(answer)
    if "json" in answer.headers.get("content-type", ""):
        try:
            problem = _json.parse(answer.text())
            code, detail = problem["code"], problem["detail"]
        except (LookupError, TypeError, ValueError):
            return not_berth(answer)
        return BY_CODE.get(code, ProblemError)(
            str(code),
            str(detail),
            status=answer.status,
            fields=problem.get("errors"),
            retry_after=retry_after,
            request_id=answer.headers.get("x-request-id"),
        )
    return not_berth(answer)


def not_berth(answer: Answer) -> NotBerth:
    """Returns the error for an answer that Berth does not give."""
    if answer.status in REDIRECTS and "location" in answer.headers:
        to = answer.headers["location"].split("?")[0]
        text = (
            f"it redirects to {to}, where no request and no token went. Give the URL that it leads to as the server's"
        )
    else:
        kind = answer.headers.get("content-type", "no content type")
        text = (
            f"it answered {answer.status} with {kind}, which is no answer of Berth's HTTP API. "
            "The server's URL is what stands before /v1"
        )
    return NotBerth(f"{answer.request}: {text}", status=answer.status, retry_after=_retry_after(answer))


def _retry_after(answer: Answer) -> float | None:
    try:
        seconds = float(answer.headers["retry-after"])
    except (LookupError, ValueError):
        return None
    return seconds if 0 <= seconds < float("inf") else None


def refuse_other(kind: str, name: str, uid: str, *, meant: str | None) -> None:
    """Raises UIDMismatch where the object of the name is another than the one that is meant; None: any is."""
    if meant is not None and uid != meant:
        raise UIDMismatch(
            "UIDMismatch", f'{kind} "{name}" has the UID {uid}, and {meant} was meant, which is gone.', status=409
        )
