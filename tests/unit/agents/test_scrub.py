"""What is struck from texts that are stored and shown, and what must stay readable."""

from __future__ import annotations

import time

import pytest

from casework.agents.scrub import told

ENVIRONMENT = {
    "CASEWORK_DATABASE_URL": "postgresql://app:hunter2%40pw@db/x",
    "READ_DSN": "host=db user=app password='dsn pass-1'",
    "OTEL_EXPORTER_OTLP_HEADERS": "x-honeycomb-team=abcdef123456,x-other=hea%20der99",
    "DB_PASS": "sup3rs3cretvalue",
    "SMTP_PWD": "mailpw-99887",
    "STRIPE_CRED": "credvalue778899",
    "API_KEY": "k-123456789",
    "DB_AUTHORIZATION": "auth-value-55",
    "API_TOKENS": "tok-one,tok-two",
    "COMPASS_FILE": "readable-path",
    "MAX_TOKENS": "100000",
    "PASSWORD_ENABLED": "disabled",
    "KEYBOARD": "qwertz-keyboard",
    "PWD": "/home/app/work",
    "OLDPWD": "/home/app/before",
    "TOKENIZERS_PARALLELISM": "falsely",
}
"""Variables as installations have them."""


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("client_secret=abc", "abc"),
        ("db_password=abc", "abc"),
        ("POSTGRES_PASSWORD=abc", "abc"),
        ("PGPASSWORD=abc", "abc"),
        ("token=zzz999", "zzz999"),
        ("refresh_token=zzz999", "zzz999"),
        ("accessToken: zzz999", "zzz999"),
        ("https://x?sig=1&token=zzz999&a=b", "zzz999"),
        ("https://x?token=zzz999", "zzz999"),
        ("Authorization: Token abc123", "abc123"),
        ("Authorization: abc123", "abc123"),
        ("'authorization': 'Digest user=\"u\", response=\"abc123\"'", "abc123"),
        ("Proxy-Authorization: Basic YWJj", "YWJj"),
        ("X-Api-Key: 0123456789", "0123456789"),
        ("x-auth-token: 0123456789", "0123456789"),
        ("password='hunter2 pw' host=db", "pw'"),
        ('password="a b c"', "b c"),
        ("{'password': 'abc def ghi'}", "def"),
        ('{"client_secret": "x \\"y\\" z"}', "z"),
        ("client_secret: 'x y z'", "y"),
        ("password='never closed, says he", "closed"),
        ("pwd=abc'def", "def"),
        ("db_pass=abc99", "abc99"),
        ("smtp_pwd: abc99", "abc99"),
        ("aws_credentials=abc99", "abc99"),
        ("passphrase=abc99", "abc99"),
        ("private_key=abc99", "abc99"),
        ("postgresql://u:p/w@h/db", "p/w"),
        ("postgresql://u:p w@h/db", "p w"),
        ("fatal: hunter2%40pw refused", "hunter2"),
        ("fatal: hunter2@pw refused", "hunter2"),
        ("fatal: dsn pass-1 refused", "pass-1"),
        ("x-honeycomb-team: abcdef123456", "abcdef123456"),
        ("who is abcdef123456", "abcdef123456"),
        ("who is hea der99", "der99"),
        ("it said sup3rs3cretvalue", "sup3rs3cretvalue"),
        ("it said mailpw-99887", "mailpw-99887"),
        ("it said credvalue778899", "credvalue778899"),
        ("it said tok-one,tok-two", "tok-one"),
        ("it said auth-value-55", "auth-value-55"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA"),
        ("at eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF", "eyJ"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----", "MIIE"),
    ],
)
def test_a_secret_is_struck(text: str, secret: str) -> None:
    """Names of secrets however they are joined, quoted values to their end, and what variables hold."""
    assert secret not in told(text, ENVIRONMENT)
    assert "***" in told(text, ENVIRONMENT)


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=5",
        "maxTokens: 5",
        "tokens_in=10, tokens_out=12",
        "the key figures: income and debt",
        "the tokenizer= wordpiece",
        "compass: north",
        "bypass=true",
        "passed=3 failed=1",
        "passengers: 4",
        "KeyError: 'income'",
        "keyboard=qwertz",
        "monkey=bananas",
        "idempotency_key is absent",
        "the password is wrong",
        "no token was sent",
        "a secretary: Ms Jones",
        "duplicate key value violates unique constraint",
        "Key (run_id)=(5) already exists",
        "author=Ada",
        "authority: none",
        "credit=12000, credits: 3",
        "see https://example.com/a:b/c?d=e and mail ada@example.com",
        "at /home/app/work and /home/app/before",
        "token_count=7",
        "key_figures: 12",
        "prompt_tokens=12 completion_tokens=7",
        "keyword=loan",
        "disabled readable-path 100000",
        "password_length=12",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    """An error is there to be read."""
    assert told(text, ENVIRONMENT) == text


@pytest.mark.parametrize("part", ["password='", "://a:", "token" * 3 + "=", "a_", "-----BEGIN ", "eyJ", "key", '="\\'])
def test_a_long_text_is_scrubbed_in_no_time(part: str) -> None:
    began = time.monotonic()
    told(part * 50_000, ENVIRONMENT)
    assert time.monotonic() - began < 5
