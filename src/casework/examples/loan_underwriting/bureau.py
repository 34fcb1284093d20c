"""A credit bureau and registry of incomes as a server of its own, with the shipped applicants, for demos and drills.

    python -m casework.examples.loan_underwriting.bureau --port 0 --latency 0.2 --received FOLDER [--evidence CSV]

`POST /inquiries` and `GET /incomes/{applicant_id}` are described in `http_evidence.py` and `http_income.py`. An
inquiry's effect (a trace on the applicant's record) happens when it arrives, the answer goes out `latency` seconds
later; the same `Idempotency-Key` again is a repeat and has no second effect. `APP-1001.anything` is a namesake of
APP-1001, counted apart. With `--evidence` the applicants are those of a CSV file, as `csv_evidence.py` describes it.
`GET /counts` tells what really happened; `PUT /latency` with `{"seconds": n}` changes it for later calls;
`PUT /release` answers those that wait now.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from casework.errors import FatalError, ToldError
from casework.examples.loan_underwriting.csv_evidence import CsvEvidence
from casework.examples.loan_underwriting.evidence import CreditReport, IncomeEvidence
from casework.examples.loan_underwriting.fixtures import CREDIT_REPORTS, INCOMES
from casework.values import Plain, dumps, loads

LARGEST_BODY = 100_000
"""Bytes of the largest request that is read."""

Answer = tuple[int, Plain]


class Bureau:
    """What the bureau knows and has counted. Safe to use from several threads."""

    def __init__(self, latency: float = 0.0, received: Path | None = None, evidence: CsvEvidence | None = None) -> None:
        self.latency = latency
        self._evidence = evidence
        self._received = received
        self._lock = threading.Condition()
        self._releases = 0
        self._calls: Counter[str] = Counter()
        self._effects: Counter[str] = Counter()
        self._in_flight: Counter[str] = Counter()
        self._subjects: dict[str, str] = {}

    def inquiry(self, key: str, applicant_id: str) -> Answer:
        """Make an inquiry, or answer it again."""
        known = self._report_of(_base(applicant_id))
        if known is None:
            return 404, {"error": f"no applicant {applicant_id}"}
        with self._lock:
            first = self._subjects.setdefault(key, applicant_id)
            if first != applicant_id:
                return 422, {"error": "this Idempotency-Key was used for another applicant"}
            self._calls[key] += 1
            self._take_effect(key)
        self._take_time(key)
        return 200, replace(known, applicant_id=applicant_id)

    def _take_effect(self, key: str) -> None:
        """The trace on the applicant's record; a key that was here before leaves no second one."""
        if not self._effects[key]:
            self._effects[key] += 1

    def income(self, applicant_id: str) -> Answer:
        """Look up an income."""
        known = self._income_of(_base(applicant_id))
        if known is None:
            return 404, {"error": f"no applicant {applicant_id}"}
        name = f"income_verification:{applicant_id}"
        with self._lock:
            self._calls[name] += 1
        self._arrived(name)
        return 200, replace(known, applicant_id=applicant_id)

    def _report_of(self, applicant_id: str) -> CreditReport | None:
        try:
            return self._evidence.report_of(applicant_id) if self._evidence else CREDIT_REPORTS.get(applicant_id)
        except ToldError:
            return None

    def _income_of(self, applicant_id: str) -> IncomeEvidence | None:
        try:
            return self._evidence.income_of(applicant_id) if self._evidence else INCOMES.get(applicant_id)
        except ToldError:
            return None

    def counts(self) -> Answer:
        """Calls and effects by name, and what is in flight now."""
        with self._lock:
            flying = sorted(name for name, number in self._in_flight.items() if number > 0)
            return 200, {"calls": dict(self._calls), "effects": dict(self._effects), "in_flight": flying}

    def release(self) -> Answer:
        """Answer every call that waits."""
        with self._lock:
            self._releases += 1
            self._lock.notify_all()
        return 200, {}

    def _take_time(self, name: str) -> None:
        with self._lock:
            latency = self.latency  # as it is now: a later change is for later calls
            self._in_flight[name] += 1
            releases = self._releases
        self._arrived(name)
        with self._lock:
            self._lock.wait_for(lambda: self._releases != releases, latency)
            self._in_flight[name] -= 1

    def _arrived(self, name: str) -> None:
        if self._received is not None:
            (self._received / name.replace("/", "_")).touch()


class Handler(BaseHTTPRequestHandler):
    """HTTP around a bureau."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    bureau: Bureau

    def do_POST(self) -> None:
        """An inquiry."""
        body, key = self._body(), (self.headers.get("Idempotency-Key") or "").strip()
        if self.path != "/inquiries":
            return self._answer(404, {"error": "no such path"})
        if not key or not isinstance(body.get("applicant_id"), str):
            return self._answer(400, {"error": "send applicant_id, and the header Idempotency-Key"})
        return self._answer(*self.bureau.inquiry(key, body["applicant_id"]))

    def do_GET(self) -> None:
        """Counts, or an income."""
        if self.path == "/counts":
            return self._answer(*self.bureau.counts())
        if self.path.startswith("/incomes/"):
            return self._answer(*self.bureau.income(unquote(self.path.removeprefix("/incomes/"))))
        return self._answer(404, {"error": "no such path"})

    def do_PUT(self) -> None:
        """Another latency, or the end of all waiting."""
        if self.path == "/release":
            return self._answer(*self.bureau.release())
        seconds = self._body().get("seconds")
        if self.path != "/latency" or isinstance(seconds, str) or seconds is None or not 0 <= seconds <= 60:
            return self._answer(400, {"error": "PUT /latency takes seconds from 0 to 60"})
        self.bureau.latency = float(seconds)
        return self._answer(200, {"seconds": seconds})

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """No log: it would mix with the output of whoever started this."""

    def _body(self) -> dict[str, Any]:
        try:
            length = int(self.headers.get("Content-Length") or 0)
            found = loads(self.rfile.read(length)) if 0 < length <= LARGEST_BODY else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _answer(self, status: int, body: Plain) -> None:
        content = dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # whoever asked is gone; what was done stays done


def _base(applicant_id: str) -> str:
    return applicant_id.partition(".")[0]


class Server(ThreadingHTTPServer):
    """Callers of this server are killed for a living, so a connection that breaks is no news."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say something of other errors only."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(bureau: Bureau, port: int) -> ThreadingHTTPServer:
    """A server on the loopback address; port 0 takes any free one."""
    handler = type("BureauHandler", (Handler,), {"bureau": bureau})
    return Server(("127.0.0.1", port), handler)


def main(kind: type[Bureau] = Bureau) -> None:
    """Serve a bureau of that kind until killed."""
    parser = argparse.ArgumentParser(description="A credit bureau with the shipped applicants.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds until an inquiry is answered")
    parser.add_argument("--received", type=Path, help="folder that gets a file for each call that arrived")
    parser.add_argument("--evidence", type=Path, help="CSV file of the applicants it knows (default: the shipped ones)")
    wish = parser.parse_args()
    server = serve(kind(wish.latency, wish.received, _evidence(wish.evidence)), wish.port)
    print(f"Listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return


def _evidence(file: Path | None) -> CsvEvidence | None:
    """The applicants of a file, read now, so that a wrong one is told before anyone asks."""
    if file is None:
        return None
    made = CsvEvidence(file)
    try:
        made.read()
    except FatalError as error:
        sys.exit(f"The bureau cannot start: {error}")
    return made


if __name__ == "__main__":
    main()
