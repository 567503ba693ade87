"""The API server as a pod sees it: its account is mounted, its address is in the environment.

A few requests over one connection each, without a client library: the launcher stays for as long as its role
does, and has to be small. Proxies of the environment are for the world outside, and are not asked.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from clickmill.errors import ConfigError
from clickmill.launch.address import Address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Json = dict[str, Any]

ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ACCOUNT_VARIABLE = "CLICKMILL_SERVICE_ACCOUNT"
"""Another folder for the account: for tests, and for accounts that are mounted by hand."""
HOST_VARIABLE = "KUBERNETES_SERVICE_HOST"
PORT_VARIABLE = "KUBERNETES_SERVICE_PORT"

_ANSWER_S = 20.0


class Refused(Exception):  # noqa: N818 - an answer, of which the caller knows what it means
    """The API server has answered, but not with what was asked for."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Unreachable(Exception):  # noqa: N818 - whoever asked may ask again
    """The API server does not answer now."""


class ApiServer:
    """Asks as the account of this pod."""

    def __init__(self, address: Address, account: Path) -> None:
        self.address = address
        self._account = account
        # The address in the environment is often a bare IP; certificates of API servers name it.
        self._context = ssl.create_default_context(cafile=str(account / "ca.crt"))

    @classmethod
    def of_pod(cls, environ: Mapping[str, str]) -> ApiServer:
        """As Kubernetes tells every pod; ConfigError where this is none, or has no account."""
        host, port = environ.get(HOST_VARIABLE), environ.get(PORT_VARIABLE) or "443"
        if not host:
            raise ConfigError(
                f"`{HOST_VARIABLE}` is not set: this process is in no pod, or its pod hides the API server",
                hint="outside Kubernetes `clickmill train` and `clickmill ssh-cluster` start clusters",
            )
        account = Path(environ.get(ACCOUNT_VARIABLE) or ACCOUNT_FOLDER)
        if not (account / "token").is_file():
            raise ConfigError(
                f"this pod has no account to ask the API server with: there is no `{account / 'token'}`",
                hint="set `serviceAccountName` in the pod template, and leave "
                "`automountServiceAccountToken` at true",
            )
        return cls(Address(host, int(port)), account)

    @property
    def account_name(self) -> str:
        """The ServiceAccount of this pod, as its token says; `default` where that cannot be read."""
        try:
            payload = self._token().split(".")[1]
            subject = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"]
            return str(subject).rpartition(":")[2]
        except (IndexError, KeyError, ValueError, TypeError, binascii.Error):
            return "default"

    def get(self, path: str, *, seconds: float = _ANSWER_S, **query: str) -> Json:
        """An object, or a list of them; Unreachable where it does not come within so many seconds."""
        return self._ask("GET", path, query, seconds=seconds)

    def put(self, path: str, body: Json) -> Json:
        """Replace an object; Refused with 409 where it has changed since it was read."""
        return self._ask("PUT", path, {}, json.dumps(body))

    def watch(self, path: str, *, seconds: int, **query: str) -> Iterator[Json]:
        """Changes of a list as they happen, for so many seconds. May end earlier; then it is listed anew."""
        query |= {"watch": "1", "timeoutSeconds": str(seconds)}
        connection, response = self._open("GET", path, query, timeout_s=seconds + _ANSWER_S)
        try:
            while line := response.readline():
                yield json.loads(line)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(_words(error)) from error
        finally:
            connection.close()

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: str | None = None,
        seconds: float = _ANSWER_S,
    ) -> Json:
        connection, response = self._open(method, path, query, body, seconds)
        try:
            found: Json = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(_words(error)) from error
        finally:
            connection.close()
        return found

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: str | None = None,
        timeout_s: float = _ANSWER_S,
    ) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(*self.address, timeout=timeout_s, context=self._context)
        headers = {"Authorization": f"Bearer {self._token()}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            if response.status < 300:
                return connection, response
            message = response.read().decode(errors="replace")
        except ssl.SSLCertVerificationError as error:
            connection.close()
            raise ConfigError(
                f"the API server at {self.address} is not who it should be: {error.verify_message}",
                hint=f"its certificate is checked with `{self._account / 'ca.crt'}`",
            ) from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unreachable(_words(error)) from error
        connection.close()
        if response.status >= 500 or response.status == 429:
            raise Unreachable(f"it answers with {response.status}: {_told(message)}")
        raise Refused(response.status, _told(message))

    def _token(self) -> str:
        """Read each time: tokens of accounts are renewed within the hour."""
        return (self._account / "token").read_text(encoding="ascii").strip()


def _told(body: str) -> str:
    """The message of a Status object, which is how an API server refuses."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.strip()[:200]


def _words(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
