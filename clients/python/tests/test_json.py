import json
from decimal import Decimal
from typing import Any

import pytest
from berth_client import _json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9007199254740993", 2**53 + 1),
        ("-9007199254740993", -(2**53) - 1),
        ("9" * 40, 10**40 - 1),
        ("9" * 5000, Decimal("9" * 5000)),
        ("1.5", 1.5),
        ("0.1", 0.1),
        ("1e300", 1e300),
        ("0.10000000000000001", Decimal("0.10000000000000001")),
        ("1.00000000000000000001", Decimal("1.00000000000000000001")),
        ("1e-400", Decimal("1e-400")),
        ("1e999", Decimal("1e999")),
        ("1e9999999999999999999", "1e9999999999999999999"),
        ("null", None),
        ('""', ""),
        ('"\\ud83d\\ude00"', "😀"),
    ],
)
def test_a_number_is_exact(text: str, value: Any) -> None:
    read = _json.parse(text)
    assert read == value and type(read) is type(value)
    assert _json.parse(_json.write(read, "it").decode()) == value


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1.", "[" * 100_000, "", "{"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        _json.parse(text)


@pytest.mark.parametrize("value", [float("nan"), Decimal("Infinity"), object(), {1, 2}, "\ud800", {"a": b""}])
def test_what_json_does_not_have_is_not_sent(value: Any) -> None:
    with pytest.raises(ValueError, match="^the input cannot be sent as JSON"):
        _json.write({"spec": value}, "the input")


def test_a_member_is_told_as_it_was_written() -> None:
    text = ' { "a" : [1, {"output": 2}], "b\\u0063" : {"x":1} , "status":{"phase":"x" ,"output": 1.50 } } '
    assert _json.member(text, "status", "output") == "1.50"
    assert _json.member(text, "bc", "x") == "1"
    assert _json.member(text, "output") is None
    assert _json.member("[1]", "a") is None
    assert json.loads(_json.member(text, "a") or "") == [1, {"output": 2}]
