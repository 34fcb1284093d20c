"""The URL of a database: what cannot be meant is refused, and no message shows a piece of the password."""

from __future__ import annotations

import traceback
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.errors import SettingsError
from casework.store.dsn import cannot_open, options, parsed, place

SECRET = "hunter2"


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{SECRET} {SECRET}@host/db",
        f"postgresql://me:{SECRET}%zz@host/db",
        f"postgresql://me:{SECRET}%@host/db",
        f"postgresql://me:x@{SECRET}@host/db",
        f"postgresql://me:{SECRET}/x@host/db",
        f"postgresql://me:12/{SECRET}@host/db",
        f"postgresql://me:[{SECRET}@host:x/db",
        f"postgresql://me:pw@host:{SECRET}/db",
        f"postgresql://me:pw@host/db?{SECRET}",
        f"postgresql://me:pw@host/db?{SECRET}=1",
        f"host=h password=a {SECRET}",
        f"host=h password='{SECRET}",
        f"{SECRET}",
        f"postgres//me:{SECRET}@host/db",
        f"postgresql://me:{SECRET}\ud800@host/db",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused_without_its_text(dsn: str) -> None:
    """Neither the message nor the traceback shows a part of it; the message names variable and remedy."""
    with pytest.raises(SettingsError, match=r"CASEWORK_DATABASE_URL.*percent-encode") as caught:
        parsed(dsn)
    assert SECRET not in "".join(traceback.format_exception(caught.value)).replace(f"{dsn!r}", "")
    assert caught.value.field == "CASEWORK_DATABASE_URL"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1))
def test_any_password_goes_through_percent_encoded(password: str) -> None:
    """The remedy that the message names works."""
    parts = parsed(f"postgresql://me:{quote(password, safe='')}@host:5433/db")
    assert parts["password"] == password
    assert place(parts) == "host:5433/db"


def test_several_hosts_and_sockets_are_taken() -> None:
    """What the driver takes is taken."""
    assert place(parsed("postgresql://me@a:1,b:2/db")) == "a,b:1,2/db"
    assert place(parsed("postgresql:///db?host=/tmp")) == "/tmp:5432/db"
    assert place(parsed("dbname=db")) == "local socket:5432/db"


def test_a_secret_in_the_drivers_text_is_struck() -> None:
    """Whatever the driver says, the password is not in it."""
    parts = parsed(f"postgresql://me:{SECRET}@host/db")
    told = str(cannot_open(psycopg.OperationalError(f"no such thing: {SECRET}"), parts))
    assert SECRET not in told
    assert "Check CASEWORK_DATABASE_URL" in told


def test_what_the_url_says_counts_more() -> None:
    """Time-outs of the network are ours unless the URL names them."""
    ours = options(parsed("dbname=db"), "me", 5, 20)
    assert (ours["tcp_user_timeout"], ours["keepalives"], ours["connect_timeout"]) == (20_000, 1, 5)
    assert "tcp_user_timeout" not in options(parsed("dbname=db tcp_user_timeout=1"), "me", 5, 20)
