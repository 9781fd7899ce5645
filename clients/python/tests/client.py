"""Clients as the tests make them."""

from typing import Any

from berth_client import AsyncBerth, Timing

TOKEN = "secret-token-of-the-tests"
FAST = Timing(connect=60, answer=60, first_contact=0.2, wait=0.5, stream_silence=60, retry_first=0.002, retry_most=0.01)
"""Short pauses; silence of a busy machine is no failure."""


def client(url: str, **options: Any) -> AsyncBerth:
    return AsyncBerth(url, **{"token": TOKEN, "timing": FAST, "namespace": "default", "deadline": 100, **options})
