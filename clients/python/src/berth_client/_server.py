"""Which server a client talks to, with which token, in which namespace."""

import base64
import json
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from ._errors import ConfigurationError

Token: TypeAlias = str | os.PathLike[str] | Callable[[], str | Awaitable[str]]
"""A token, a file that is read for each request, or a function that is called for each request."""

_POD_TOKEN = "/var/run/secrets/berth/token"
"""Token with the audience of Berth that a pod has by a projected volume. That of its service account is for the API of Kubernetes alone."""
_POD_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
_WAYS = (
    f"Give server= and token=, or set BERTH_SERVER and BERTH_TOKEN_FILE (in a pod a token at {_POD_TOKEN} is found), "
    'or start an embedded cluster with "berth local up"'
)


@dataclass(frozen=True)
class Server:
    url: str
    """Without a slash at its end."""
    token: Token = field(repr=False)
    namespace: str
    is_local: bool
    """On this machine's loopback interface."""


def choose_server(server: str | None, token: Token | None, namespace: str | None, allow_plain_text: bool) -> Server:
    """Returns the server that is given, that of the environment, or the embedded cluster's. Raises ConfigurationError."""
    url, origin = (server, "server") if server is not None else (os.environ.get("BERTH_SERVER") or None, "BERTH_SERVER")
    if url is None:
        url, embedded_token = _embedded()
        origin, token = "the embedded cluster", token if token is not None else embedded_token
        namespace = namespace or "default"
    local = _check_url(url, origin, allow_plain_text)
    token = _pod_token(origin) if token is None else token
    if isinstance(token, str):
        check_token(token, "token")
    return Server(url.rstrip("/"), token, namespace or _pod_namespace(), local)


def check_token(token: str, origin: str) -> str:
    """Returns the token without spaces around it. Raises ConfigurationError, without its text."""
    token = token.strip()
    if token.startswith("/"):
        raise ConfigurationError(f"{origin} begins with /: for a file give token=pathlib.Path(…)")
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        raise ConfigurationError(
            f"{origin} is empty" if token == "" else f"{origin} has no token alone: one line without spaces"
        )
    return token


def origin_of(token: Token) -> str:
    """Says where a token comes from, for texts."""
    if isinstance(token, str):
        return "the option token"
    return "the function token" if callable(token) else f"the file {os.fspath(token)}"


def expiry_of(token: str) -> datetime | None:
    """Returns when a token of the cluster expires; None for one that does not say."""
    try:
        claims = token.split(".")[1]
        content: Any = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        return datetime.fromtimestamp(content["exp"], UTC)
    except (LookupError, TypeError, ValueError, OverflowError, OSError):
        return None


def read_token(path: "os.PathLike[str]") -> str:
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the token's file {os.fspath(path)} cannot be read: {getattr(error, 'strerror', None) or 'no UTF-8'}"
        ) from None
    return check_token(text, f"the token's file {os.fspath(path)}")


def _check_url(url: str, origin: str, allow_plain_text: bool) -> bool:
    example = "https://berth.example.com"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigurationError(f"{origin}: {error}; it is a URL like {example}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(
            f"{origin}: the URL of a server begins with https:// or http://, for example {example}"
        )
    if parts.username or parts.password:
        raise ConfigurationError(f"{origin}: the URL has a user or a password; give a token instead")
    if parts.query or parts.fragment:
        raise ConfigurationError(f"{origin}: the URL has a ? or #; leave off what follows, for example {example}")
    local = host in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){3}", host) is not None
    if parts.scheme == "http" and not local and not allow_plain_text:
        raise ConfigurationError(
            f"{origin}: {host} would get the token unencrypted; use https://, "
            "or give allow_plain_text=True if the network between may read it"
        )
    return local


def _pod_token(origin: str) -> Path:
    named = os.environ.get("BERTH_TOKEN_FILE")
    if named:
        return Path(named)
    if os.path.exists(_POD_TOKEN):
        return Path(_POD_TOKEN)
    raise ConfigurationError(f"{origin} is given without a token. {_WAYS}")


def _pod_namespace() -> str:
    try:
        return Path(_POD_NAMESPACE).read_text("utf-8").strip() or "default"
    except OSError:
        return "default"


def _home() -> Path:
    """Folder of the embedded cluster, as the command line has it."""
    if os.environ.get("BERTH_HOME"):
        return Path(os.environ["BERTH_HOME"])
    data = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share") / "berth"


def _embedded() -> tuple[str, Path]:
    """Address and token file of the embedded cluster that runs."""
    try:
        state: Any = json.loads((_home() / "state.json").read_text("utf-8"))
        pid, url, token = state["pid"], state["apiUrl"], state["apiTokenFile"]
    except (OSError, LookupError, TypeError, ValueError):
        raise ConfigurationError(f"there is no server to talk to. {_WAYS}") from None
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass
    except OSError:
        raise ConfigurationError(f"the embedded cluster of {_home()} does not run any more. {_WAYS}") from None
    return url, Path(token)
