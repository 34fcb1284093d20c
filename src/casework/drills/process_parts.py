"""The parts of the process drill by their names."""

from __future__ import annotations

from dataclasses import dataclass

from casework.drills import process_claimers, process_errors, process_schedule, process_stop, process_trays
from casework.drills.process_ground import ProcessGround
from casework.drills.promises import Report

_MODULES = (process_claimers, process_schedule, process_trays, process_errors, process_stop)
TITLES = {module.NAME: module.TITLE for module in _MODULES}


@dataclass(frozen=True)
class Sizes:
    """How large the parts are: `kills` of workers, one each `kill_every` seconds, and of claimers."""

    transactions: int
    kills: int
    kill_every: float
    claimers: int
    rows: int


async def play(ground: ProcessGround, report: Report, sizes: Sizes) -> None:
    """Play the part that the report names.

    Raises:
        BrokenOffError: it cannot go on.
        CaseworkError: a server is away, or refuses.
    """
    match report.name:
        case process_claimers.NAME:
            await process_claimers.play(ground, report, sizes.claimers, sizes.rows, sizes.kills)
        case process_trays.NAME:
            await process_trays.play(ground, report, sizes.transactions, sizes.kills, sizes.kill_every)
        case process_errors.NAME:
            await process_errors.play(ground, report)
        case process_stop.NAME:
            await process_stop.play(ground, report)
        case process_schedule.NAME:
            await process_schedule.play(ground, report)
