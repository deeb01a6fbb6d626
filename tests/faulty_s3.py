"""A proxy before the tests' S3 server that does what networks and stores do on a bad day, and counts how often it did.

A fault is a function of a request that says what happens to it: one of `KINDS`, or None. Whoever uses it asserts that
the faults happened.
"""

import http.client
import http.server
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import pytest

STALL_SECONDS = 3.0


class Request(NamedTuple):
    """The number of a request since the proxy was told to count from 0, and what is asked."""

    number: int
    command: str
    path: str


Fault = Callable[[Request], str | None]
ERROR = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
REFUSALS = {
    "slow down": (503, "SlowDown", "Please reduce your request rate."),
    "error inside": (500, "InternalError", "We encountered an internal error. Please try again."),
    "bad gateway": (502, "", ""),
    "forbidden": (403, "AccessDenied", "Access Denied"),
    "no bucket": (404, "NoSuchBucket", "The specified bucket does not exist"),
}
# Those with a body, in either direction: the connection is reset in its middle; it ends there; it ends there and the
# length header agrees; the middle of what is sent to the store is missing and the length header agrees.
DAMAGES = ("reset", "cut", "cut in agreement", "sent in part")
KINDS = (*REFUSALS, *DAMAGES, "stall")


def none(request: Request) -> str | None:
    """A good day."""
    return None


def sometimes(share: float, *kinds: str, seed: int = 0) -> Fault:
    """One of these kinds for a share of the requests; the same ones for the same seed."""
    chance = random.Random(seed)
    return lambda request: chance.choice(kinds) if chance.random() < share else None


def once_published(kind: str) -> Fault:
    """Every request after the first shard that was sent to the store."""
    published: list[Request] = []

    def fault(request: Request) -> str | None:
        if published:
            return kind
        if request.command == "PUT" and request.path.endswith(".shard"):
            published.append(request)
        return None

    return fault


def bursts(kind: str, of: int, every: int) -> Fault:
    """So many requests in a row, then good ones until as many as `every` have come."""
    return lambda request: kind if request.number % every < of else None


class FaultyS3:
    """The proxy. `fault` may be changed at any time; `happened` counts by kind."""

    def __init__(self, target: str) -> None:
        self.target, self.fault = target, none
        self.happened: Counter[str] = Counter()
        self.requests = 0
        self._lock = threading.Lock()
        self._port = 0
        self.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, on the same port each time."""
        proxy = self

        class Handler(_Handler):
            faulty = proxy

        self._server = _Server(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and end those that are there."""
        self._server.shutdown()
        self._server.server_close()
        self._server.end_connections()

    def away(self, seconds: float) -> threading.Thread:
        """Be down for so long; the thread ends when it is up again."""
        self.stop()
        self.happened["away"] += 1

        def return_later() -> None:
            time.sleep(seconds)
            self.start()

        thread = threading.Thread(target=return_later, daemon=True)
        thread.start()
        return thread

    def next_fault(self, command: str, path: str) -> str | None:
        with self._lock:
            kind = self.fault(Request(self.requests, command, path))
            self.requests += 1
            return kind

    def note(self, kind: str) -> None:
        with self._lock:
            self.happened[kind] += 1


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, *given) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*given)

    def process_request(self, request, client_address):
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self._open.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        for connection in list(self._open):
            with suppress(OSError):  # it has ended by itself
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_):
        """A client that hung up is no news here."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # answers `Expect: 100-continue`, without which a client holds its body back
    disable_nagle_algorithm = True  # a header and its body are two writes
    faulty: FaultyS3

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = self.faulty.next_fault(self.command, self.path)
        if kind == "stall":
            self.faulty.note(kind)
            time.sleep(STALL_SECONDS)
        if kind in REFUSALS:
            self.faulty.note(kind)
            status, code, message = REFUSALS[kind]
            text = ERROR.format(code=code, message=message) if code else "<html>no XML</html>"
            self._answer(status, {"Content-Type": "application/xml"}, text.encode())
            return
        if kind == "sent in part" and len(body) > 1:
            self.faulty.note(kind)
            body = body[: len(body) // 3] + body[-(len(body) // 3) :]
        status, headers, answer = self._passed_on(body)
        if kind in ("reset", "cut", "cut in agreement") and len(answer) > 1:
            self.faulty.note(kind)
            self._damaged(kind, status, headers, answer)
        else:
            self._answer(status, headers, answer)

    def _passed_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        onward = http.client.HTTPConnection(self.faulty.target.removeprefix("http://"))
        headers = {**self.headers, "Content-Length": str(len(body))} if body else dict(self.headers)
        onward.request(self.command, self.path, body, headers)
        answer = onward.getresponse()
        try:
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            onward.close()

    def _damaged(self, kind: str, status: int, headers: dict[str, str], answer: bytes) -> None:
        half = answer[: len(answer) // 2]
        if kind == "cut in agreement":
            self._answer(status, {**headers, "Content-Length": str(len(half))}, half)
            return
        self._answer(status, {**headers, "Content-Length": str(len(answer))}, half)
        self.wfile.flush()
        self.close_connection = True
        if kind == "reset":
            _reset(self.connection)

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", headers.get("Content-Length", str(len(body))))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve

    def log_message(self, *_):
        pass


def _reset(connection: socket.socket) -> None:
    """End a connection so that the other side sees a reset, not an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@contextmanager
def connected_to(endpoint: str) -> Iterator[None]:
    """This process, and those that it starts, reach S3 at another address."""
    import fsspec

    from raybench import remote

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        remote._filesystem_of.cache_clear()
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        yield
    remote._filesystem_of.cache_clear()
    fsspec.get_filesystem_class("s3").clear_instance_cache()
