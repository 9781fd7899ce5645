"""Which server a client talks to, and with which token."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from berth_client import Berth, ConfigurationError, _server


@pytest.fixture(autouse=True)
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("BERTH_SERVER", "BERTH_TOKEN_FILE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BERTH_HOME", str(tmp_path))


def embedded(home: Path, **more: Any) -> None:
    state = {"pid": os.getpid(), "apiUrl": "http://127.0.0.1:8080", "apiTokenFile": str(home / "api-token"), **more}
    (home / "state.json").write_text(json.dumps(state))


def test_without_a_word_the_embedded_cluster_is_taken(tmp_path: Path) -> None:
    embedded(tmp_path)
    with Berth() as berth:
        assert repr(berth) == "<Berth of http://127.0.0.1:8080>" and berth.namespace == "default"


def test_the_environment_goes_before_the_embedded_cluster_and_the_argument_before_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded(tmp_path)
    monkeypatch.setenv("BERTH_SERVER", "https://env.example/berth/")
    monkeypatch.setenv("BERTH_TOKEN_FILE", str(tmp_path / "token"))
    with Berth() as berth:
        assert "https://env.example/berth>" in repr(berth)
    with Berth("http://[::1]:1", token="x", namespace="mine") as berth:
        assert "http://[::1]:1>" in repr(berth) and berth.namespace == "mine"


def test_a_pod_takes_the_token_that_is_projected_for_berth_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    projected = tmp_path / "projected"
    monkeypatch.setattr(_server, "_POD_TOKEN", str(projected))
    monkeypatch.setenv("BERTH_SERVER", "https://env.example")
    with pytest.raises(ConfigurationError, match="BERTH_SERVER is given without a token"):
        Berth()
    projected.write_text("a-token")
    assert _server.choose_server(None, None, None, False).token == projected
    monkeypatch.setenv("BERTH_TOKEN_FILE", "/other")
    assert _server.choose_server(None, None, None, False).token == Path("/other")


@pytest.mark.parametrize(
    ("server", "token", "text"),
    [
        (None, None, "there is no server to talk to. Give server= and token=, or set BERTH_SERVER .*berth local up"),
        ("https://x", None, "server is given without a token. .*BERTH_TOKEN_FILE"),
        ("berth.example", "t", "begins with https:// or http://"),
        ("https://u:p@x", "t", "has a user or a password"),
        ("https://x?a", "t", r"has a \? or #"),
        ("https://x:99999", "t", "Port out of range"),
        ("http://x", "t", "x would get the token unencrypted"),
        ("https://x", "", "token is empty"),
        ("https://x", "two words", "token has no token alone"),
        ("https://x", "/var/run/token", r"give token=pathlib.Path"),
    ],
)
def test_what_cannot_be_used_is_told_with_what_to_do(server: str | None, token: str | None, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text) as caught:
        Berth(server, token=token)
    assert "u:p" not in str(caught.value) and "two words" not in str(caught.value)


def test_a_cluster_that_has_ended_is_told(tmp_path: Path) -> None:
    embedded(tmp_path, pid=2**22 + 1)
    with pytest.raises(ConfigurationError, match="does not run any more"):
        Berth()


@pytest.mark.parametrize("text", [None, "", "two words"])
def test_a_token_file_that_cannot_be_used_is_named_and_not_shown(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    with Berth("http://127.0.0.1:1", token=file) as berth, pytest.raises(ConfigurationError, match=str(file)) as caught:
        berth.session("s").get()
    assert "two" not in str(caught.value)


@pytest.mark.parametrize("deadline", [0, -1, float("nan")])
def test_a_deadline_is_more_than_nothing(deadline: float) -> None:
    with (
        Berth("http://127.0.0.1:1", token="x") as berth,
        pytest.raises(ValueError, match="deadline must be more than 0"),
    ):
        berth.session("s").get(deadline=deadline)


def test_a_field_given_twice_and_an_input_that_is_no_json_are_refused() -> None:
    with Berth("http://127.0.0.1:1", token="x") as berth:
        with pytest.raises(ValueError, match="class is given as an argument and in spec"):
            berth.run(class_="a", spec={"class": "b", "input": 1}, input=1)
        with pytest.raises(ValueError, match="cannot be sent as JSON"):
            berth.run(input=float("nan"))
