"""A whole case over the wire: the scripted underwriter behind real HTTP, and a bureau that counts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import pytest

from casework.agents import Message, ModelRequest, Toolbox, ToolContext
from casework.agents.invoke import invoke
from casework.errors import FatalError, RetryableError, ToldError
from casework.examples.loan_underwriting import app, fixtures
from casework.examples.loan_underwriting.script import underwriter
from casework.examples.loan_underwriting.settings import BUREAU_URL
from casework.examples.loan_underwriting.tools import TOOLS, credit_check
from casework.models.catalogue import Models
from casework.policy import PolicyReading
from casework.testing import OpenAiServer, scripted
from casework.values import dumps, plain

SCHEMA = {
    "type": "object",
    "required": ["recommendation", "rationale"],
    "properties": {"recommendation": {"enum": ["approve", "refer", "decline"]}, "rationale": {"type": "string"}},
}
APPLICATION = {"applicant_id": fixtures.BORDERLINE, "amount": 12000, "purpose": "debt_consolidation"}
WORDS = f"Underwrite.\nApplicant: {fixtures.BORDERLINE}\nAmount: 12000 USD\nPurpose: debt_consolidation"


class ShippedPolicy:
    async def read(self, purpose: str) -> PolicyReading:
        limits = app.fixture_limits(purpose)
        assert limits is not None
        return PolicyReading(limits)


async def test_a_case_of_two_turns_through_a_real_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-9, DA-13, DA-15. Tool calls, results, recommendation and the reviewer's words, as HTTP carries them."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    toolbox = Toolbox(TOOLS)
    messages: list[Message] = [Message(1, "u", "user", WORDS)]
    evidence: dict[str, Any] = {}
    outputs = []
    with OpenAiServer(scripted(underwriter)) as server:
        model = Models(base_url=server.url).resolve("openai:any")
        for words in (None, "Is the employment stable?"):
            if words is not None:
                messages.append(Message(len(messages) + 1, "u", "user", words))
            while True:
                answer = await model.request(
                    ModelRequest("You underwrite.", tuple(messages), toolbox.schemas(), SCHEMA)
                )
                messages.append(
                    Message(len(messages) + 1, "u", "assistant", answer.text, answer.requests, parts=answer.parts)
                )
                if not answer.requests:
                    outputs.append(answer.output)
                    break
                for request in answer.requests:
                    ctx = ToolContext(
                        "t", UUID(int=1), "p", "k", input=APPLICATION, evidence=evidence, policies=ShippedPolicy()
                    )
                    evidence[request.name] = await invoke(toolbox.asked(request.name), ctx, request.arguments)
                    content = dumps(evidence[request.name])
                    at = len(messages) + 1
                    messages.append(Message(at, "u", "tool", content, call_id=request.call_id, tool=request.name))
        assert len(server.requests) == 5
    assert [output["recommendation"] for output in outputs] == ["refer", "refer"]
    assert "Is the employment stable?" in outputs[1]["rationale"]
    assert "37.89" in outputs[0]["rationale"]


class Bureau:
    """A credit bureau in its own thread: counts calls and keys, and can be told to fail."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.answers: list[tuple[int, str]] = []
        bureau = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                bureau.calls.append(self.headers["Idempotency-Key"])
                status, text = bureau.answers.pop(0) if bureau.answers else bureau.report(body["applicant_id"])
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *args: Any) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    @staticmethod
    def report(applicant: str) -> tuple[int, str]:
        found = fixtures.CREDIT_REPORTS.get(applicant)
        return (404, "unknown") if found is None else (200, dumps(plain(found)))


@pytest.fixture
def bureau(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bureau]:
    made = Bureau()
    monkeypatch.setenv(BUREAU_URL, f"http://127.0.0.1:{made.http.server_port}/")
    yield made
    made.http.shutdown()
    made.http.server_close()


def case(applicant: str = fixtures.BORDERLINE) -> ToolContext:
    return ToolContext("t", UUID(int=1), "p", "key-7", input={**APPLICATION, "applicant_id": applicant})


async def test_the_inquiry_passes_the_idempotency_key_on(bureau: Bureau) -> None:
    """DA-27. Keyed: the destination sees the same key at every attempt; the report is that of the fixtures."""
    for _ in range(2):
        result = await invoke(credit_check, case(), {"applicant_id": fixtures.BORDERLINE})
    assert bureau.calls == ["key-7", "key-7"]
    assert result == {**plain(fixtures.CREDIT_REPORTS[fixtures.BORDERLINE])}


async def test_nulls_of_the_bureau_are_missing_facts(bureau: Bureau) -> None:
    """DA-11. A thin file is a fact."""
    result = await invoke(credit_check, case(fixtures.THIN_FILE), {"applicant_id": fixtures.THIN_FILE})
    assert result["score"] is None
    assert "score" in result["missing"]


@pytest.mark.parametrize(
    ("status", "text", "becomes"),
    [
        (404, "", ToldError),
        (422, "no consent", ToldError),
        (401, "", FatalError),
        (429, "", RetryableError),
        (503, "", RetryableError),
        (200, "{not json", RetryableError),
        (200, "[]", RetryableError),
        (200, '{"score": "high"}', RetryableError),
    ],
)
async def test_each_answer_of_the_bureau_has_its_class(
    bureau: Bureau, status: int, text: str, becomes: type[Exception]
) -> None:
    """DA-18. Retry, tell the model, or fail the run."""
    bureau.answers.append((status, text))
    with pytest.raises(becomes) as caught:
        await invoke(credit_check, case(), {"applicant_id": fixtures.BORDERLINE})
    assert type(caught.value) is becomes
    assert len(bureau.calls) == 1


@pytest.mark.parametrize(
    ("url", "becomes"), [("http://127.0.0.1:1", RetryableError), ("nonsense", FatalError), ("ftp://x", FatalError)]
)
async def test_a_bureau_that_cannot_be_reached(
    url: str, becomes: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DA-18. Nobody there is passing trouble; an address that is none is a fault of the setting."""
    monkeypatch.setenv(BUREAU_URL, url)
    with pytest.raises(becomes):
        await invoke(credit_check, case(), {"applicant_id": fixtures.BORDERLINE})
