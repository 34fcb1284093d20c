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

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from casework.errors import FatalError, ToldError
from casework.examples.loan_underwriting.csv_evidence import CsvEvidence
from casework.examples.loan_underwriting.evidence import CreditReport, IncomeEvidence
from casework.examples.loan_underwriting.fixtures import CREDIT_REPORTS, INCOMES
from casework.testing.destination import NOT_FOUND, Answer, CountingHandler, CountingServer, arguments, run, serve
from casework.values import Plain


class Bureau(CountingServer):
    """What the bureau knows and does."""

    def __init__(self, latency: float = 0.0, received: Path | None = None, evidence: CsvEvidence | None = None) -> None:
        super().__init__(latency, received)
        self._evidence = evidence
        self._subjects: dict[str, str] = {}

    def inquiry(self, key: str, applicant_id: str) -> Answer:
        """Make an inquiry, or answer it again."""
        known = self._report_of(_base(applicant_id))
        if known is None:
            return 404, {"error": f"no applicant {applicant_id}"}
        with self.lock:
            first = self._subjects.setdefault(key, applicant_id)
            if first != applicant_id:
                return 422, {"error": "this Idempotency-Key was used for another applicant"}
            self.called(key)
            self._take_effect(key)
        self.take_time(key)
        return 200, replace(known, applicant_id=applicant_id)

    def _take_effect(self, key: str) -> None:
        """The trace on the applicant's record; a key that was here before leaves no second one."""
        if not self.effects[key]:
            self.effects[key] += 1

    def income(self, applicant_id: str) -> Answer:
        """Look up an income."""
        known = self._income_of(_base(applicant_id))
        if known is None:
            return 404, {"error": f"no applicant {applicant_id}"}
        name = f"income_verification:{applicant_id}"
        with self.lock:
            self.called(name)
        self.arrived(name)
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


class Handler(CountingHandler[Bureau]):
    """HTTP around a bureau."""

    def get(self, path: str) -> Answer:
        """An income."""
        if path.startswith("/incomes/"):
            return self.served.income(unquote(path.removeprefix("/incomes/")))
        return NOT_FOUND

    def post(self, path: str, body: Mapping[str, Plain]) -> Answer:
        """An inquiry."""
        if path != "/inquiries":
            return NOT_FOUND
        if not self.key or not isinstance(body.get("applicant_id"), str):
            return 400, {"error": "send applicant_id, and the header Idempotency-Key"}
        return self.served.inquiry(self.key, body["applicant_id"])


def _base(applicant_id: str) -> str:
    return applicant_id.partition(".")[0]


def main(kind: type[Bureau] = Bureau) -> None:
    """Serve a bureau of that kind until killed."""
    parser = arguments("A credit bureau with the shipped applicants.")
    parser.add_argument("--evidence", type=Path, help="CSV file of the applicants it knows (default: the shipped ones)")
    wish = parser.parse_args()
    run(serve(kind(wish.latency, wish.received, _evidence(wish.evidence)), Handler, wish.port))


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
