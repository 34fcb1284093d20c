"""What an application gives so that `casework demo` and `casework drill` can run it: cases, policies, a destination.

The commands know no application. They submit these inputs, load these policies as their owner, and start the
destination as a process of its own, whose counts say from outside what really happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Destination:
    """A server outside the platform that tools act on, and that counts.

    `command` is started with `--port 0 --latency SECONDS --received FOLDER` behind it and prints `Listening on URL`.
    It leaves an empty file named by the call (NAME, with `_` for `/`) in FOLDER when a call has arrived and taken
    effect, and answers `latency` later. `GET /counts` gives `{"calls": {NAME: n}, "effects": {NAME: n}, "in_flight":
    [NAME], "arrivals": {NAME: [t]}}`. NAME is the key of the call (`ctx.key`), or `TOOL:SUBJECT` for a tool that sends
    none, with the subject as the tag field of the input has it. `t` is when a call arrived, one for each, in seconds
    since the epoch by the clock of this machine: so a drill sees a call that came after its result was committed.
    Without `arrivals` it only sees one more call than acts were begun. `PUT /latency` with `{"seconds": n}` changes the
    latency for later calls; `PUT /release` answers those in flight.
    """

    command: tuple[str, ...]
    variables: tuple[str, ...]
    """Environment variables of the workers that get its URL."""
    keyed: tuple[str, ...] = ()
    """Tools whose calls carry the idempotency key there."""
    referenced: tuple[str, ...] = ()
    """Tools whose calls carry the key as a reference by which they are found again, for tools that verify."""
    sets: tuple[str, ...] = ()
    """Tools that set something of the subject there, which is an effect when it changes, for idempotent tools."""
    reads: tuple[str, ...] = ()
    """Tools that only read there."""
    evidence: str | None = None
    """Option of `command` that takes a CSV file of subjects, which it then knows instead of the shipped ones."""

    @property
    def acting(self) -> tuple[str, ...]:
        """Tools whose calls may have an effect there."""
        return self.keyed + self.referenced + self.sets

    def name_of(self, tool: str, key: str, subject: str) -> str | None:
        """NAME of a call of `tool`, whose step has that key and whose case that subject; None: it does not go there."""
        if tool in self.keyed + self.referenced:
            return key
        return f"{tool}:{subject}" if tool in self.sets + self.reads else None


@dataclass(frozen=True)
class OwnTables:
    """Tables of the application in the ledger's database: what its transactional tools write.

    They must count what happened, not prevent it: a unique key on what a tool writes would hide a second effect.
    """

    prepare: Path
    """A file of SQL, run once as the database's owner before the first worker starts. It makes the tables, and grants
    the role `casework_runtime`, in which workers write, what the tools need."""
    effects: Mapping[str, str]
    """For each transactional tool a query, run as the owner: its rows are the key of a call (`ctx.key`) as text, and
    how many effects that call has had."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """One application's part. The first input is the case that people look at; it must end at a person."""

    workflow: str
    inputs: tuple[tuple[str, Mapping[str, Any]], ...]
    """Label and input of each case."""
    stages: tuple[tuple[str, ...], ...]
    """The tools that a case calls: those of a stage side by side, the stages one after the other."""
    policy: Path | None = None
    """The policy in force, as its owner would load it; None where no tool reads one."""
    changed_policy: Path | None = None
    """A later version, under which the first case gets another recommendation."""
    destination: Destination
    tables: OwnTables | None = None
    """What transactional tools write; None where there are none."""
    tag_field: str
    """A text field of the input; the destination takes `VALUE.TAG` for the same subject as VALUE, counted apart."""
    approve: str = "approve"
    """The command that ends a case well, and `outcome` what it ends with."""
    outcome: str = "approved"
    reject: str = "reject"
    more_info: str = "more_info"
    question: str = "What makes this acceptable?"
    """What the scripted reviewer asks for with `more_info`."""
    look_again: str = "Please look up all evidence again."
    """Words of a reviewer after which the tools are called again."""
    policy_tool: str = "policy_lookup"
    """The tool whose result has `recommendation`, `policy_name` and `version`."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables of the workers."""

    @property
    def tools(self) -> tuple[str, ...]:
        """All tools that a case calls."""
        return tuple(tool for stage in self.stages for tool in stage)

    def with_evidence(self, file: Path) -> Rehearsal:
        """The same with a destination that knows the subjects of a CSV file, where it can take one."""
        if self.destination.evidence is None:
            return self
        command = (*self.destination.command, self.destination.evidence, str(file.absolute()))
        return replace(self, destination=replace(self.destination, command=command))

    def tagged(self, tag: str, number: int = 0) -> dict[str, Any]:
        """Input `number` as a case of its own: its subject carries the tag."""
        made = dict(self.inputs[number % len(self.inputs)][1])
        made[self.tag_field] = f"{made[self.tag_field]}.{tag}"
        return made
