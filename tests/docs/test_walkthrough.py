"""The page that people begin with, done as it says: a real stack, and its commands one after the other."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from casework.children.ports import free_port
from tests.docs.outputs import fits, shown
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/getting_started.md"
STEPS = [
    (call.words, output)
    for block in blocks(PAGE)
    if block.language in ("sh", "console")
    for call, output in shown(block)
    if call.words[:1] == ["casework"]
]
DEADLINE_S = 60.0
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
CONFLICT = 3


class Reader:
    """Somebody who follows the page; `folder` is where."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("CASEWORK_", "TEMPORAL_"))}
        self.run_id = ""
        self.decided: list[str] = []

    @contextmanager
    def stack(self, words: list[str]) -> Iterator[None]:
        """The page's `casework dev`, from when it is ready to when it has ended well."""
        dev = self._start(words)
        try:
            deadline = time.monotonic() + DEADLINE_S
            while "Ready." not in (told := (self.folder / "dev.out").read_text()):
                assert dev.poll() is None, told
                assert time.monotonic() < deadline, told
                time.sleep(0.1)
            yield
        finally:
            if dev.poll() is None:
                dev.send_signal(signal.SIGINT)
            code = dev.wait(DEADLINE_S)
        assert code == 0

    def _start(self, words: list[str]) -> subprocess.Popen[bytes]:
        # The page's port may be another program's here, and the page does not show what is said then.
        environment = {**self.environment, "CASEWORK_API_PORT": str(free_port())}
        with (self.folder / "dev.out").open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-m", *words], cwd=self.folder, env=environment, stdout=out, stderr=out
            )

    def types(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        """A command of the page, with the ids that this reader got instead of the page's."""
        own = [self.run_id if word == "RUN" else UUID.sub(lambda _: self.decided[0], word) for word in words]
        return subprocess.run(
            [sys.executable, "-m", *own],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    def notes(self, said: str) -> None:
        """Remember the run that was started and the reviews that were decided."""
        if started := re.search(rf"Run ({UUID.pattern}) is PENDING", said):
            self.run_id = started[1]
        self.decided += re.findall(rf"was accepted for review ({UUID.pattern})", said)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    (tmp_path / "src").symlink_to(ROOT / "src")
    made = Reader(tmp_path)
    with made.stack(STEPS[0][0]):
        yield made


def test_getting_started_is_done_as_it_says(reader: Reader) -> None:
    """DA-13. DA-34. DA-46. From the request to the trail, by the page's own commands; the late answer is refused.

    Where the page shows an output it is the output that one gets.
    """
    assert STEPS[0][0][:2] == ["casework", "dev"]
    started = (reader.folder / "dev.out").read_text()
    assert fits(STEPS[0][1], started), started
    for words, output in STEPS[1:]:
        done = reader.types(words)
        late = any(UUID.fullmatch(word) for word in words)
        assert done.returncode == (CONFLICT if late else 0), (words, done.stdout, done.stderr)
        reader.notes(done.stdout)
        assert not output or fits(output, done.stdout + done.stderr), f"{words} prints\n{done.stdout}{done.stderr}"
    assert len(reader.decided) == 2
    assert done.stdout.rstrip().endswith("The trail is whole.")
