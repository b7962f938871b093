"""HTTP to an address a person typed: http and https only, bounded in time and size, no redirects, no proxies.

A page that fetches what a visitor typed can be used to reach what only its machine can reach. So link-local and
metadata addresses are refused, and the address that was checked is the one connected to (a name cannot resolve to
something else in between). Loopback and private networks are allowed where the page is one's own, since that is where
one's server is; a page open to everybody passes `public_only` and reaches public addresses and web ports only.
"""

import http.client
import ipaddress
import json
import socket
import ssl
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

SCHEMES = {"http": 80, "https": 443}
METADATA = frozenset(
    ipaddress.ip_address(address)
    for address in ("169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
NAT64 = ipaddress.ip_network("64:ff9b::/96")
FIRST_FREE_PORT = 1024  # below it, a public page reaches the ports of the two schemes only
MAX_URL, MAX_KEY = 2000, 1000
NOT_PUBLIC = (
    "This page is open to everybody, so it reaches servers on the public internet only. To watch one on your own "
    "machine or network, start the playground there."
)
STATUS_HINTS = {
    401: " It wants an API key.",
    403: " It wants another API key.",
    404: " Is the URL the server's own, and the model's name right?",
}
CHUNK = 1 << 14


class WatchError(ValueError):
    """The server cannot be watched; the message is a sentence for a person."""


class Refused(WatchError):
    """The server is there and answered with another `status` than 200."""

    def __init__(self, path: str, status: int):
        super().__init__(f"{path} answered {status}, not 200.{STATUS_HINTS.get(status, '')}")
        self.status = status


def check_address(address: str, public_only: bool = False) -> None:
    """Refuse an IP address that no inference server has.

    Raises:
        WatchError: link-local, metadata, multicast, unspecified or reserved; with `public_only` also loopback,
            private and shared ones.
    """
    ip = ipaddress.ip_address(address.split("%")[0])
    if ip.version == 6:
        embedded = ipaddress.ip_address(int(ip) & 0xFFFFFFFF) if ip in NAT64 else None
        for inner in (ip.ipv4_mapped, ip.sixtofour, embedded):
            if inner is not None:
                check_address(str(inner), public_only)
    usable = not (ip.is_link_local or ip.is_multicast or ip.is_unspecified)
    if not usable or ip in METADATA or (ip.is_reserved and not ip.is_loopback):
        raise WatchError("This address is link-local, a metadata service or reserved; it is not fetched.")
    if public_only and not ip.is_global:
        raise WatchError(NOT_PUBLIC)


class Server:
    """One server under a base URL, e.g. http://127.0.0.1:8000; `/v1` behind it is taken off."""

    def __init__(self, url: str, timeout_s: float, key: str = "", public_only: bool = False):
        """Take the URL apart and resolve its host.

        Args:
            key: sent as a bearer token with each request; it appears in no message.
            public_only: refuse loopback and private addresses too.

        Raises:
            WatchError: not http(s), with a user name in it, at a refused address, or a key that is none.
        """
        try:
            parts = urlsplit(url.strip()[:MAX_URL])
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise WatchError("This is not a URL: write it like http://127.0.0.1:8000") from error
        if parts.scheme not in SCHEMES or not host:
            raise WatchError("Only http and https are allowed: write the URL like http://127.0.0.1:8000")
        if parts.username or parts.password:
            raise WatchError("A URL with a user name or password in it is not fetched.")
        self.scheme, self.host, self.port = parts.scheme, host, port or SCHEMES[parts.scheme]
        self.path = parts.path.rstrip("/").removesuffix("/v1")
        if public_only and self.port < FIRST_FREE_PORT and self.port not in SCHEMES.values():
            raise WatchError(f"Port {self.port} is not one of an inference server.")
        if len(key) > MAX_KEY or not all("!" <= letter <= "~" for letter in key):
            raise WatchError("This is no API key: keys have no spaces, line breaks or letters beyond ASCII.")
        self.timeout_s, self._key = timeout_s, key
        self.addresses = _resolved(host, self.port, public_only)

    def get(self, path: str, max_bytes: int) -> str:
        """Fetch a text. Raises WatchError when it cannot be had, or is longer than `max_bytes`."""
        deadline = time.monotonic() + self.timeout_s
        text = b"".join(self.stream("GET", path, None, max_bytes, deadline))
        return text.decode("utf-8", "replace")

    def stream(self, method: str, path: str, body: dict | None, max_bytes: int, deadline: float) -> Iterator[bytes]:
        """Yield what comes, piece by piece, until it ends.

        Raises:
            WatchError: no connection, an answer that is not 200, too much, or too long.
        """
        connection = _Pinned(self)
        try:
            payload = None if body is None else json.dumps(body).encode()
            headers = {"Accept": "*/*"} | ({"Content-Type": "application/json"} if payload else {})
            headers |= {"Authorization": f"Bearer {self._key}"} if self._key else {}
            connection.request(method, self.path + path, payload, headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise Refused(path, answer.status)
            size = 0
            while piece := answer.read1(CHUNK):
                size += len(piece)
                if size > max_bytes:
                    raise WatchError(f"{path} sent more than {max_bytes:,} bytes.")
                if time.monotonic() > deadline:
                    raise WatchError(f"{path} took too long.")
                yield piece
        except (OSError, http.client.HTTPException) as error:
            raise WatchError(_unreachable(f"{self.host}:{self.port}", error)) from error
        finally:
            connection.close()


class _Pinned(http.client.HTTPConnection):
    """A connection to the address that was checked; TLS still checks the name."""

    def __init__(self, server: Server):
        super().__init__(server.host, server.port, timeout=server.timeout_s)
        self.server = server

    def connect(self) -> None:
        """Open the socket."""
        sock = self._connected()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.server.scheme == "https":
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=self.server.host)
        self.sock = sock

    def _connected(self) -> socket.socket:
        """Try the checked addresses in turn: "localhost" is often ::1 first, where few servers listen."""
        failed: OSError = OSError("no address")
        for address in self.server.addresses:
            try:
                return socket.create_connection((address, self.server.port), self.server.timeout_s)
            except OSError as error:
                failed = error
        raise failed


def _unreachable(where: str, error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return f"No server answers at {where}: is it running, and is the port right?"
    if isinstance(error, TimeoutError):
        return f"{where} took too long to answer."
    if isinstance(error, ssl.SSLError):
        return f"{where} speaks no TLS that is trusted here; a server of your own usually has http:// in its URL."
    return f"{where} cannot be read ({type(error).__name__})."


def _resolved(host: str, port: int, public_only: bool) -> tuple[str, ...]:
    """Return the addresses of a host, after checking them all."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise WatchError(f"{host} is not known here.") from error
    addresses = [str(item[4][0]) for item in found]
    for address in addresses:
        check_address(address, public_only)
    return tuple(dict.fromkeys(addresses))
