"""A local server that speaks the chat-completions wire format, for tests and drills.

It runs in a thread, answers what it was told to, in order, and keeps what it was asked. It is strict where the real one
is: a tool call without an answer, an answer without a call or a malformed tool is refused with 400. A request that asks
for a stream gets its answer as one, word by word; `halts` stops one on the way.

    with OpenAiServer([calls(("credit_check", {"applicant_id": "A-1"})), says("Done.")]) as server:
        ...  # base_url=server.url
        assert server.requests[0].body["model"] == "test-model"
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from casework.testing.openai_rules import Script, asked_of, refusal, wanted_by
from casework.testing.openai_stream import events, wants_stream
from casework.values import dumps

HANG_LIMIT = 30.0
"""Longest time that a hanging answer holds its thread, in seconds; the end of the server frees it at once."""


@dataclass(frozen=True)
class Reply:
    """One answer. `cut` ends the connection after half of it; `hang` gives none before the server ends.

    `halt`: a stream stops after so many events, until `release` or the end of the server.
    """

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    hang: bool = False
    halt: int | None = None


@dataclass(frozen=True)
class Recorded:
    """A request as it came; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


Responder = Callable[[Any], Reply]
"""Makes a reply from a request's body."""


def says(text: str, *, tokens: tuple[int, int] = (10, 5)) -> Reply:
    """The model answers with words; `tokens` are those in and out."""
    return _completion({"role": "assistant", "content": text}, "stop", tokens)


def calls(
    *wanted: tuple[str, Any], text: str | None = None, tokens: tuple[int, int] = (10, 5), start: int = 1
) -> Reply:
    """The model asks for tools: pairs of name and arguments (a text goes out as it is). Ids count from `start`."""
    made = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": _arguments(arguments)}}
        for n, (name, arguments) in enumerate(wanted, start=start)
    ]
    return _completion({"role": "assistant", "content": text, "tool_calls": made}, "tool_calls", tokens)


def fails(status: int, message: str = "it fails", *, retry_after: str | None = None, code: str | None = None) -> Reply:
    """An error as the real service words it; `retry_after` is the header, seconds or an HTTP date."""
    headers = {"Retry-After": retry_after} if retry_after is not None else {}
    return Reply(status, json.dumps({"error": {"message": message, "type": "error", "code": code}}), headers)


def cut(reply: Reply) -> Reply:
    """The same answer, with the connection cut in the middle of the body, or of the stream."""
    return replace(reply, cut=True)


def halts(reply: Reply, after: int) -> Reply:
    """The same answer, as a stream that goes no further after so many events. The first one is empty of words."""
    return replace(reply, halt=after)


def hangs() -> Reply:
    """No answer at all."""
    return Reply(hang=True)


def scripted(script: Script) -> Responder:
    """Answers every request as a script does, so that a whole conversation goes over the wire."""

    def respond(body: Any) -> Reply:
        answer = script(asked_of(body))
        wanted = wanted_by(answer)
        start = 1 + sum(len(message.get("tool_calls") or ()) for message in body["messages"])
        return calls(*wanted, text=answer.text or None, start=start) if wanted else says(answer.text)

    return respond


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else dumps(arguments)


def _completion(message: Mapping[str, Any], reason: str, tokens: tuple[int, int]) -> Reply:
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    body = {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1767225600,
        "model": "test-model",
        "choices": [choice],
        "usage": usage,
    }
    return Reply(200, json.dumps(body))


class OpenAiServer:
    """The server, started on entry and stopped on exit. Give it replies in order, or a responder for every request."""

    def __init__(self, replies: Iterable[Reply] | Responder) -> None:
        self.requests: list[Recorded] = []
        self.left = 0
        """Streams that whoever asked for them left before their end."""
        self._respond = replies if callable(replies) else None
        self._replies = [] if callable(replies) else list(replies)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._released = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": self}))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> OpenAiServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def reply_to(self, request: Recorded) -> Reply:
        """The next reply, or a refusal."""
        with self._lock:
            self.requests.append(request)
            if not request.path.endswith("/chat/completions"):
                return fails(404, f"no route {request.path}")
            wrong = refusal(request.body)
            if wrong is not None:
                return fails(400, wrong)
            if self._respond is not None:
                return self._respond(request.body)
            return self._replies.pop(0) if self._replies else fails(500, "the test has no reply left")

    def release(self) -> None:
        """Let every stream that halts go on."""
        self._released.set()

    def wait_for_end(self) -> None:
        """Hold a hanging answer."""
        self._ended.wait(HANG_LIMIT)

    def halting(self, gone: Callable[[], bool]) -> None:
        """Hold a stream, until it is released or whoever asked for it is `gone`."""
        deadline = time.monotonic() + HANG_LIMIT
        while not self._released.wait(0.02) and time.monotonic() < deadline:
            if gone():
                raise ConnectionResetError

    def was_left(self) -> None:
        """Count a stream that nobody reads any more."""
        with self._lock:
            self.left += 1


class _Handler(BaseHTTPRequestHandler):
    served: OpenAiServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Recorded(self.path, headers, _json(raw))
        reply = self.served.reply_to(asked)
        if wants_stream(asked.body) and reply.status == 200 and not reply.hang:
            self._stream(reply, asked.body)
        else:
            self._send(reply)

    def _stream(self, reply: Reply, asked: Mapping[str, Any]) -> None:
        self.send_response(200)
        for name, value in {"Content-Type": "text/event-stream", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        made = list(events(reply.body, asked))
        try:
            for number, event in enumerate(made[: len(made) // 2] if reply.cut else made):
                if number == reply.halt:
                    self.served.halting(self._is_gone)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            if not reply.cut:
                self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.served.was_left()
            self.close_connection = True
        self.close_connection = self.close_connection or reply.cut

    def _is_gone(self) -> bool:
        """Whether the other side has closed the connection."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _send(self, reply: Reply) -> None:
        if reply.hang:
            self.served.wait_for_end()
            self.close_connection = True
            return
        body = reply.body.encode()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if reply.cut else body)
        self.close_connection = reply.cut

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server uses
        """Say nothing: requests are recorded."""


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None
