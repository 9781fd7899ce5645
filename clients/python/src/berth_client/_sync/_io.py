"""What the two halves of the package do differently.

This file is written by hand in both; the others of the sync half are generated.
"""

import inspect
import socket
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import cast

import httpx2

from .._errors import ConfigurationError
from .._server import Token, check_token, read_token

sleep = time.sleep


def limit(seconds: float) -> AbstractContextManager[object]:
    """Does nothing: nobody can interrupt a thread. Each read has a timeout, and the time is looked at after each."""
    return nullcontext()


def token_of(token: Token) -> str:
    """Returns the present token. What a function raises goes to the caller."""
    if isinstance(token, str):
        return token
    if callable(token):
        made = token()
        if inspect.iscoroutine(made):
            made.close()
        if inspect.isawaitable(made):
            raise ConfigurationError(
                "the function token is a coroutine: give it to AsyncBerth, or a plain function to Berth"
            )
        return check_token(made, "what the function token returned")
    return read_token(token)


def pieces_of(response: httpx2.Response) -> Generator[bytes, None, None]:
    """Returns the content as it comes. Close it: the collection of garbage would, but late."""
    return cast(Generator[bytes, None, None], response.iter_raw())


def interrupt(response: httpx2.Response) -> None:
    """Ends a response that another thread reads: a shutdown wakes the reader, which then closes the response."""
    stream = response.extensions.get("network_stream")
    connected = stream.get_extra_info("socket") if stream is not None else None
    if connected is not None:
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
