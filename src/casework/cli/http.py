"""The client of the API that the commands share: where the API is, who asks, and a problem turned into an error.

The address and the token come from CASEWORK_API_URL and CASEWORK_TOKEN, else from the stack that runs in this folder
(see `stack`). The local token is never sent to another address than the local one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx2

from casework.cli import stack
from casework.errors import (
    AccessError,
    CaseworkError,
    InputError,
    NotFoundError,
    OperationError,
    SettingsError,
    StateError,
    UnauthenticatedError,
    UnreachableError,
)
from casework.settings import Settings
from casework.values import Plain, dumps, loads

TIMEOUT_S = 30.0
"""How long one request may take, in seconds; a call that waits for something adds that time."""

SHOWN_FIELDS = 20
"""Most fields at fault that one sentence names."""
_USABLE_TOKEN = re.compile(r"[\x21-\x7e]+")

_ERRORS: dict[int, type[CaseworkError]] = {
    400: InputError,
    401: UnauthenticatedError,
    403: AccessError,
    404: NotFoundError,
    409: StateError,
    413: InputError,
    415: InputError,
    422: InputError,
    502: UnreachableError,
    503: UnreachableError,
    504: UnreachableError,
}


@dataclass(frozen=True)
class Answer:
    """A good answer: its status and its JSON."""

    status: int
    body: Any


class Api:
    """The API at one address. Safe to use from several threads; close it, or use it as a context manager.

    Raises:
        SettingsError: address or token cannot be used.
    """

    def __init__(self, url: str, token: str | None) -> None:
        self.url = _checked(url).rstrip("/")
        if token and not _USABLE_TOKEN.fullmatch(token):
            raise SettingsError(
                "The token holds a character that no token has (a blank, a control or a non-ASCII one). "
                "Set CASEWORK_TOKEN to what `casework token create` printed.",
                field="CASEWORK_TOKEN",
            )
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx2.Client(base_url=self.url, headers=headers, timeout=TIMEOUT_S, trust_env=not _local(url))

    @classmethod
    def find(cls) -> Self:
        """The API that environment or folder name.

        Raises:
            InputError: neither names one.
        """
        settings = Settings.load()
        local = stack.find(settings)
        url = settings.api.url or local.api_url
        if not url:
            raise InputError(
                "No API is known here. Start one with `casework dev`, or set CASEWORK_API_URL and CASEWORK_TOKEN.",
                field="CASEWORK_API_URL",
            )
        token = settings.api.token.reveal() if settings.api.token else None
        if not token and url.rstrip("/") == (local.api_url or "").rstrip("/"):
            token = local.token()
        return cls(url, token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at `path`; query values that are None are left out.

        Raises:
            CaseworkError: the API refused, or cannot be reached.
        """
        wanted = {key: str(value) for key, value in query.items() if value is not None}
        return self._ask("GET", path, params=wanted).body

    def post(
        self, path: str, body: Plain, *, headers: Mapping[str, str] | None = None, wait_s: float = 0, **query: Any
    ) -> Answer:
        """Send `body`; the status is the caller's to read (200 or 202).

        Raises:
            CaseworkError: the API refused, or cannot be reached.
        """
        all_headers = {"Content-Type": "application/json", **(headers or {})}
        wanted = {key: str(value) for key, value in query.items() if value is not None}
        return self._ask(
            "POST", path, params=wanted, content=dumps(body), headers=all_headers, timeout=TIMEOUT_S + wait_s
        )

    def patch(self, path: str, body: Plain) -> Any:
        """Change what is at `path`; the JSON that says how it is then.

        Raises:
            CaseworkError: the API refused, or cannot be reached.
        """
        headers = {"Content-Type": "application/json"}
        return self._ask("PATCH", path, content=dumps(body), headers=headers).body

    def delete(self, path: str) -> Any:
        """Delete what is at `path`; the JSON that says what became of it.

        Raises:
            CaseworkError: the API refused, or cannot be reached.
        """
        return self._ask("DELETE", path).body

    def _ask(self, method: str, path: str, **options: Any) -> Answer:
        try:
            response = self._client.request(method, path, **options)
        except httpx2.TimeoutException:
            raise UnreachableError(
                f"The API at {self.url} did not answer {method} {path} in time. Look whether it is up, and try again."
            ) from None
        except httpx2.HTTPError as error:
            raise UnreachableError(
                f"The API at {self.url} cannot be reached ({error}). Start it with `casework dev` or `casework api`, "
                "or set CASEWORK_API_URL to where it is."
            ) from None
        if response.is_success:
            return Answer(response.status_code, _json_of(response))
        raise error_of(response)


def _checked(url: str) -> str:
    """`url`, once it can be asked. What is refused is not repeated: it may hold a password."""
    remedy = "Set CASEWORK_API_URL to an address such as http://127.0.0.1:8000."
    try:
        parts = httpx2.URL(url)
        if parts.port is not None and not 0 < parts.port < 65_536:
            raise ValueError(parts.port)
    except (httpx2.InvalidURL, ValueError):
        raise SettingsError(f"CASEWORK_API_URL is no URL. {remedy}", field="CASEWORK_API_URL") from None
    if parts.userinfo:
        raise SettingsError(
            "CASEWORK_API_URL holds a user name or password. Leave it out; who asks is told by CASEWORK_TOKEN.",
            field="CASEWORK_API_URL",
        )
    if not parts.host or parts.query or parts.fragment:
        raise SettingsError(f"CASEWORK_API_URL names no host, or more than a path. {remedy}", field="CASEWORK_API_URL")
    return url


def _local(url: str) -> bool:
    """Whether `url` is on this machine: then no proxy of the environment stands between."""
    return (httpx2.URL(url).host or "") in {"127.0.0.1", "localhost", "::1"}


def _json_of(response: httpx2.Response) -> Any:
    try:
        return loads(response.content)
    except ValueError:
        raise OperationError(
            f"{response.url} answered {response.status_code} with something that is not JSON. Is this a Casework API?"
        ) from None


def error_of(response: httpx2.Response) -> CaseworkError:
    """The error that a refused request stands for, in the API's own words."""
    try:
        document = loads(response.content)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {"detail": f"{response.url} answered {response.status_code}. Is this a Casework API?"}
    cls = _ERRORS.get(response.status_code, OperationError)
    message = sentence(document)
    return cls(message, details=document) if issubclass(cls, StateError) else cls(message)


def sentence(document: Mapping[str, Any]) -> str:
    """One clear sentence out of a problem document: the fields at fault with what is wrong, else the detail."""
    detail = str(document.get("detail") or document.get("title") or "The API refused.")
    errors = [line for line in document.get("errors") or () if isinstance(line, dict)]
    # An error of one field tells it whole in the detail already.
    if not errors or any(str(line.get("message")).rstrip(".") == detail.rstrip(".") for line in errors):
        return detail
    lines = [f"{line.get('field')} {line.get('message')}".rstrip(".") for line in errors]
    more = f"; and {len(lines) - SHOWN_FIELDS} more" if len(lines) > SHOWN_FIELDS else ""
    told = f"{'; '.join(lines[:SHOWN_FIELDS])}{more}"
    return told if told.endswith("?") else f"{told}."
