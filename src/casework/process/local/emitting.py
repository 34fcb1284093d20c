"""One poll of a Monitor in memory: what it emits goes into trays, which are walked when the poll is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from casework.process.failures import Spot, error_entity
from casework.process.identities import claim_id, monitor_owner, refusal_id
from casework.process.lines import MONITOR, Line
from casework.process.local.store import LocalStore
from casework.process.monitor_runners import Emitter, Prepare, Save
from casework.process.transactions import Transaction, begin

TENANT = "default"


@dataclass
class LocalEmitter(Emitter):
    """`poll` counts the polls of the process from 1; `new_id` gives the id of a Transaction to be."""

    line: Line
    store: LocalStore
    poll: int
    now: datetime
    new_id: Callable[[], UUID]
    environment: dict[str, str]
    trays: list[list[Transaction]] = field(default_factory=list)
    _filling: bool = False
    """Whether the last tray is one that entities are put into."""

    @property
    def room(self) -> int:
        """Trays are walked to their end, so only those of this poll count."""
        process = self.line.process
        free = process.room - len(self.trays)
        beside = process.tray_size - len(self.trays[-1]) if self._filling else 0
        return free * process.tray_size + beside

    async def claim(self, status: str, into: str) -> int:
        """One tray."""
        claim, process = self._claim(len(self.trays) + 1), self.line.process
        found = self.store.claim(
            status, into, claim, process.tray_size, process=process.name, per_key=process.max_per_key
        )
        if found:
            self._put(*found)
            self.trays.append(found)
            self._filling = False
        return len(found)

    async def take_in(
        self,
        into: str,
        key: str | None,
        save: Save,
        *,
        business_key: str | None = None,
        prepare: Prepare | None = None,
    ) -> bool:
        """What `save` writes is its own affair: nothing is undone here."""
        if key in self.store.keys:
            return False
        if prepare is not None:
            await prepare()
        uuid = self.new_id()
        data = await save(uuid, None)
        made = begin(self.line.statuses, into, uuid=uuid, at=self.now, data=data, natural_key=key)
        self.store.keys |= {key} if key is not None else set()
        if not self._filling or len(self.trays[-1]) == self.line.process.tray_size:
            self.trays.append([])
        self._filling = True
        made = replace(made, claim_id=self._claim(len(self.trays)), process=self.line.process.name)
        self.store.business_keys |= {} if business_key is None else {made.uuid: business_key}
        self._put(made)
        self.trays[-1].append(made)
        return True

    async def refuse(self, key: str | None, error: Exception) -> None:
        """An error of no Transaction; a repeat takes the place of the one before."""
        name = self.line.process.name
        owner = monitor_owner(TENANT, name)
        nobody = Transaction(uuid=owner, status="", start_time=self.now)
        times = {"started": self.now, "failed": self.now}
        told = error_entity(
            error,
            nobody,
            Spot(name, MONITOR, owner),
            root=owner,
            attempt=1,
            environment=self.environment,
            **times,
        )
        self.store.refused(replace(told, uuid=refusal_id(owner, key, told.code, told.short)))

    def _claim(self, tray: int) -> UUID:
        return claim_id(monitor_owner(TENANT, self.line.process.name), self.poll, tray)

    def _put(self, *made: Transaction) -> None:
        name, by = self.line.process.name, self.line.process.monitor.monitor_class()
        for each in made:
            self.store.put(each, name, by, self.now)
