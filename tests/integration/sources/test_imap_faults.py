"""What a mailbox says when it cannot be read: field, value and remedy; and that TLS is TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from casework.errors import SettingsError, UnreachableError
from casework.sources.attachments import Attachments, FolderAttachments
from casework.sources.imap import ImapMailbox, Mailbox
from casework.sources.references import SecretReference
from tests.integration.sources.certificates import Certificates, certificates
from tests.integration.sources.imap_server import PASSWORD, VARIABLE, ImapServer, free_port, running
from tests.integration.sources.projects import errors, keys, project
from tests.integration.sources.test_imap import mail, settings


async def refused(server: ImapServer, **more: Any) -> SettingsError:
    """What a mailbox with these settings raises."""
    async with Mailbox(settings(server, **more)) as mailbox:
        with pytest.raises(SettingsError) as raised:
            await mailbox.letters()
    return raised.value


async def test_a_login_that_is_refused(imap: ImapServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user, the server and the place of the password are named; the password is not."""
    monkeypatch.setenv(VARIABLE, "wrong-password")
    error = await refused(imap)
    assert error.field == "user"
    assert f"user 'anna' at {imap.host}:{imap.port}: the login was refused" in str(error)
    assert f"password in variable '{VARIABLE}'" in str(error)
    assert "wrong-password" not in str(error)


async def test_a_password_that_is_nowhere(imap: ImapServer, tmp_path: Path) -> None:
    """A variable that is not set, or a file that is not there, is named."""
    error = await refused(imap, password=SecretReference(variable="NOT_THERE"))
    assert (error.field, str(error)) == (
        "password",
        "password: variable 'NOT_THERE' holds no secret. Set it for the worker.",
    )
    error = await refused(imap, password=SecretReference(file=str(tmp_path / "none")))
    assert "cannot be read (No such file or directory)" in str(error)
    (tmp_path / "secret").write_text(PASSWORD + "\n")
    async with Mailbox(settings(imap, password=SecretReference(file=str(tmp_path / "secret")))) as mailbox:
        assert await mailbox.letters() == []


@pytest.mark.parametrize("field", ["folder", "move_to", "refused_to"])
async def test_a_folder_that_is_missing(imap: ImapServer, field: str) -> None:
    """Named with its setting, and the folders that there are."""
    imap.make("Claims")
    error = await refused(imap, **{field: "Clams"})
    assert error.field == field
    assert f"{field} is 'Clams', which cannot be used at {imap.host}:{imap.port}" in str(error)
    assert "'INBOX'" in str(error)
    assert "'Claims'" in str(error)


async def test_a_host_that_is_away(imap: ImapServer) -> None:
    """No server there, none that answers, one that speaks something else: each is told, and passes."""
    gone = replace(imap, port=free_port())
    async with Mailbox(settings(gone)) as mailbox:
        with pytest.raises(
            UnreachableError, match=rf"{gone.host}:{gone.port} cannot be read by IMAP.*Check host, port"
        ):
            await mailbox.letters()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        async with Mailbox(settings(imap, port=port, timeout_s=0.2)) as mailbox:
            with pytest.raises(UnreachableError, match="timed out"):
                await mailbox.letters()


async def test_a_server_that_speaks_something_else(imap: ImapServer) -> None:
    """Its words are told, so that a wrong port is seen at once."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-Server\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Mailbox(settings(imap, port=port)) as mailbox:
            with pytest.raises(UnreachableError, match=r"SSH-2\.0-Server"):
                await mailbox.letters()


async def test_a_server_that_goes_away_between_reading_and_marking(
    tmp_path: Path, kept: FolderAttachments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mail has its Transaction, that it was not marked is recorded; the connection is made anew where it can be."""
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with running(tmp_path) as imap:
        imap.put(mail(1), mail(2))
        async with Mailbox(settings(imap)) as mailbox:
            first, _ = await mailbox.letters()
            _cut(mailbox)
            await mailbox.taken(first)
            assert [letter.mail.subject for letter in await mailbox.letters()] == ["mail 2"]
        lasting = Mailbox(settings(imap))
        letters = await lasting.letters()

    class Found(ImapMailbox):
        async def query_input_entities(self) -> Any:
            return letters

    async with project(Found, mailbox=lasting, kept=(Attachments, kept)) as made:
        await made.run("intake")
        assert keys(made) == ["mail:<2@example.com>"]
        assert [code for code, _ in errors(made)] == ["UnreachableError"]


def _cut(mailbox: Mailbox) -> None:
    """End the connection as a network does."""
    mailbox._client.socket().shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def secured(tmp_path: Path, certs: Certificates, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImapServer]:
    """A server that offers STARTTLS."""
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with running(tmp_path, "--cert", str(certs.certificate), "--key", str(certs.key)) as server:
        yield server


@asynccontextmanager
async def behind_tls(server: ImapServer, certs: Certificates) -> AsyncIterator[ImapServer]:
    """The same server, as one whose connections begin with TLS."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certs.certificate, certs.key)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(server.host, server.port)
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer), return_exceptions=True)

    async with await asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context) as front:
        yield replace(server, port=front.sockets[0].getsockname()[1])


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while found := await reader.read(65536):
            writer.write(found)
            await writer.drain()
    finally:
        writer.close()


@pytest.mark.parametrize("encryption", ["tls", "starttls"])
async def test_mails_are_read_through_tls(secured: ImapServer, certs: Certificates, encryption: str) -> None:
    """With an authority that is trusted by ca_file; without it, and with another host's name, nothing is sent."""
    secured.put(mail(1))
    async with behind_tls(secured, certs) as front:
        server = front if encryption == "tls" else secured
        ours = {"encryption": encryption, "ca_file": str(certs.authority)}
        async with Mailbox(settings(server, **ours, host="localhost")) as mailbox:
            (letter,) = await mailbox.letters()
            await mailbox.taken(letter)
        error = await refused(server, encryption=encryption, host="localhost")
        assert error.field == "host"
        assert "certificate is not trusted" in str(error)
        assert "ca_file" in str(error)
        error = await refused(server, **ours, host="127.0.0.1")
        assert "certificate is not trusted" in str(error)
    assert secured.flags() == [{b"\\Seen"}]


async def test_tls_is_the_default_and_nothing_is_said_in_the_clear(imap: ImapServer) -> None:
    """A server that speaks in the clear gets no password from a mailbox that was not told so."""
    wanted = settings(imap)
    assert replace(wanted, encryption="tls", port=None).place == f"{imap.host}:993"
    async with Mailbox(replace(wanted, encryption="tls")) as mailbox:
        with pytest.raises(UnreachableError, match=r"encryption \(tls\)"):
            await mailbox.letters()


async def test_a_server_without_starttls_gets_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told that another encryption is needed; the login is not tried."""
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with running(tmp_path, "--no-tls") as server:
        error = await refused(server, encryption="starttls")
    assert error.field == "encryption"
    assert "does not offer" in str(error)


async def test_certificates_that_cannot_be_read(imap: ImapServer, tmp_path: Path) -> None:
    """The file is named."""
    error = await refused(imap, encryption="tls", ca_file=str(tmp_path / "none.pem"))
    assert (error.field, "none.pem" in str(error)) == ("ca_file", True)
    (tmp_path / "none.pem").write_text("no certificate")
    error = await refused(imap, encryption="tls", ca_file=str(tmp_path / "none.pem"))
    assert "ca_file" in str(error)
