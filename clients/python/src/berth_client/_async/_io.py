"""What the two halves of the package do differently.

This file is written by hand in both; the others of the sync half are generated.
"""

import inspect
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager

import anyio
import httpx2

from .._server import Token, check_token, read_token

sleep = anyio.sleep


def limit(seconds: float) -> AbstractContextManager[object]:
    """Raises TimeoutError in its block when the time is over."""
    return anyio.fail_after(seconds if seconds != float("inf") else None)


async def token_of(token: Token) -> str:
    """Returns the present token. What a function raises goes to the caller."""
    if isinstance(token, str):
        return token
    if callable(token):
        made = token()
        return check_token(await made if inspect.isawaitable(made) else made, "what the function token returned")
    return read_token(token)


def pieces_of(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """Returns the content as it comes. Close it: the collection of garbage would, but late."""
    return response.aiter_raw()


async def interrupt(response: httpx2.Response) -> None:
    """Ends a response that another task reads."""
    await response.aclose()
