"""JSON with exact numbers.

Integers are `int`. Other numbers are `float` where a float holds them, else `decimal.Decimal`: so is an integer with more digits than
`int` reads (`sys.get_int_max_str_digits`). A number that not even Decimal holds, with an exponent of 19 digits, is its text.
"""

import json
import re
import secrets
import sys
from decimal import Decimal, InvalidOperation
from json.decoder import JSONDecoder
from typing import Any

_EXACT_DIGITS = 15
"""Decimal digits that a float always holds."""
_SPACE = re.compile(r"[ \t\n\r]*")


def _decimal(text: str) -> Any:
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _integer(text: str) -> Any:
    limit = sys.get_int_max_str_digits()
    return _decimal(text) if 0 < limit < len(text) else int(text)


def _number(text: str) -> Any:
    number = float(text)
    if len(text) <= _EXACT_DIGITS and "e" not in text and "E" not in text:
        return number
    exact = _decimal(text)
    # A float is written in its shortest form; this is the number that was meant by it.
    return number if isinstance(exact, Decimal) and Decimal(repr(number)) == exact else exact


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_decoder = JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=_refuse)


def parse(text: str) -> Any:
    """Returns the value. Raises ValueError; also RecursionError's text as one, for a text that is nested too deep."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def member(text: str, *path: str) -> str | None:
    """Returns the text of a member of an object as it was written, found by its path; None without one."""
    for key in path:
        found = _members(text).get(key)
        if found is None:
            return None
        text = found
    return text


def _members(text: str) -> dict[str, str]:
    members: dict[str, str] = {}
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        return members
    at = _skip(text, at + 1)
    while text[at : at + 1] == '"':
        key, at = _decoder.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _decoder.raw_decode(text, start)
        members[key] = text[start:end]
        at = _skip(text, end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    return members


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def write(value: Any, what: str) -> bytes:
    """Returns the value as JSON in UTF-8. Raises ValueError, which begins with `what`, for a value that JSON does not have."""
    decimals: list[tuple[str, str]] = []

    def default(other: Any) -> str:
        if not isinstance(other, Decimal) or not other.is_finite():
            raise TypeError(f"{type(other).__name__} is no type of JSON")
        placeholder = secrets.token_hex(16)
        decimals.append((f'"{placeholder}"', str(other)))
        return placeholder

    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=default)
        for placeholder, digits in decimals:
            text = text.replace(placeholder, digits)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{what} cannot be sent as JSON: {error}") from None
