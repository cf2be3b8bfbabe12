"""Why the agent could not do what it was asked: each is one line for people, never a traceback."""

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import Final

from domain.errors import Code


class AgentFailure(Exception):  # noqa: N818 - the name says what it is to the caller: the end of what was tried
    """The base of what ends a command; `transient` says that the same call may succeed later."""

    transient: bool = False


class Unreachable(AgentFailure):
    """No answer of a Fleetgraph server came; it may be restarting."""

    transient = True


class NotFleetgraph(AgentFailure):
    """Something answers there, but no Fleetgraph server."""


class Refused(AgentFailure):
    """The server answered and declined; without a code of ours it was a fault of the server, which may pass."""

    def __init__(self, message: str, code: Code | None, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_seconds = retry_after_seconds
        self.transient = code in {None, Code.INTERNAL, Code.RATE_LIMITED, Code.UNAVAILABLE}


class NotApplied(AgentFailure):
    """The server took the inventory but did not apply it: the apply failed, or not in the time given."""


class WronglyCalled(AgentFailure):
    """What was asked for cannot be: a file that is none of its kind, a key that is no key."""


class CaptureFailed(AgentFailure):
    """The folder of a capture cannot be written."""


class NoIdentity(AgentFailure):
    """The node has no key, and none could be kept."""


_CERTIFICATE_HINT: Final = "set SSL_CERT_FILE to the file of your authority's certificates"
_REASONS: Final = {
    errno.ECONNREFUSED: "connection refused; is the server running there?",
    errno.EHOSTUNREACH: "no route to the host",
    errno.ENETUNREACH: "the network is unreachable",
    errno.ETIMEDOUT: "no answer in time",
    errno.ECONNRESET: "the connection was reset",
}


def describe_transport_error(server: str, error: BaseException) -> str:
    """Say in one line why no answer came from `server` (a URL)."""
    chain = tuple(_causes(error))
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"no trusted TLS connection to {server}: {cause.verify_message}; {_CERTIFICATE_HINT}"
    for cause in chain:
        if isinstance(cause, ssl.SSLError):
            return f"no TLS connection to {server}: {_tls_reason(cause)}"
    for cause in chain:
        if isinstance(cause, socket.gaierror):
            return f"cannot reach {server}: the host name has no address ({cause.strerror})"
        if isinstance(cause, OSError) and cause.errno is not None:
            return f"cannot reach {server}: {_REASONS.get(cause.errno) or cause.strerror or cause}"
        if isinstance(cause, TimeoutError):
            return f"cannot reach {server}: no answer in time"
    return f"cannot reach {server}: {str(error) or type(error).__name__}"


def _tls_reason(error: ssl.SSLError) -> str:
    if error.reason in {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}:
        return "the server does not speak TLS there; try http://"
    return str(error.reason or error).replace("_", " ").lower()


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it comes from, groups taken apart; a chain longer than 32 is cut."""
    waiting = [error]
    for _ in range(32):
        if not waiting:
            return
        cause = waiting.pop(0)
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            waiting += cause.exceptions
        waiting += [before for before in (cause.__cause__, cause.__context__) if before is not None]
