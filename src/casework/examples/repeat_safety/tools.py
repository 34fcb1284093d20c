"""Four tools, one for each declaration. Copy the one whose destination is like yours.

Ask of the destination: does doing it twice change nothing more (idempotent)? Does it take a key and do one key once
(keyed)? Is it a table in the ledger's own database (transactional)? Can it at least be asked afterwards (verify)? Take
the first that is true. The last is the weakest: between the question and the act there is a moment that no tool closes.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import Field

from casework.agents import Happened, Repeat, ToolContext, tool
from casework.errors import RetryableError
from casework.examples.repeat_safety.http import ask

Address = Annotated[str, Field(min_length=1, max_length=200, description="The new address, in one line.")]
Amount = Annotated[Decimal, Field(gt=0, le=1000, decimal_places=2, description="The fee in US dollars, as in 12.50.")]
Line = Annotated[str, Field(min_length=1, max_length=200, description="One line of text.")]
_JOURNAL = """
insert into change_of_address.journal (tenant, run_id, key, customer_id, entry) values (%s, %s, %s, %s, %s)
"""


@tool(repeat=Repeat.IDEMPOTENT, timeout=20)
async def set_address(ctx: ToolContext, address: Address) -> dict[str, Any]:
    """Set the customer's address at the office; gives the address that is now on record."""
    # PUT with the whole new state: doing it again changes nothing more, so it needs no key and no question.
    path = f"/customers/{quote(_customer(ctx), safe='')}/address"
    return _made(await ask("PUT", path, {"address": address}), path)


@tool(repeat=Repeat.KEYED, timeout=20)
async def charge_fee(ctx: ToolContext, amount: Amount) -> dict[str, Any]:
    """Charge the customer the fee for a change of address; gives the number of the charge."""
    # `ctx.key` is the same at every attempt of this call, and another one for every other call.
    body = {"customer_id": _customer(ctx), "amount": amount}
    return _made(await ask("POST", "/charges", body, key=ctx.key), "/charges")


@tool(repeat=Repeat.TRANSACTIONAL, timeout=10)
async def note_change(ctx: ToolContext, entry: Line) -> str:
    """Note the change in the journal of customers."""
    # The row commits together with this call's result, or not at all. Nothing here reaches outside of the database.
    await ctx.connection.execute(_JOURNAL, (ctx.tenant, ctx.run_id, ctx.key, _customer(ctx), entry))
    return f"noted: {entry}"


async def letter_was_sent(ctx: ToolContext, text: str) -> Happened | None:  # noqa: ARG001  # the tool's own parameters
    """Ask the office for a letter of this reference: asked before a second attempt, with the tool's own parameters."""
    found = await ask("GET", f"/letters/{quote(ctx.key, safe='')}")
    return None if found is None else Happened(found)


@tool(repeat=Repeat.VERIFY, verify=letter_was_sent, timeout=20)
async def send_letter(ctx: ToolContext, text: Line) -> dict[str, Any]:
    """Send the customer a letter that confirms the change; gives the letter's number."""
    # The office sends a letter for every request that it gets. The reference is for it a text like any other; it lets
    # `letter_was_sent` find the letter again.
    body = {"customer_id": _customer(ctx), "reference": ctx.key, "text": text}
    return _made(await ask("POST", "/letters", body), "/letters")


TOOLS = (set_address, charge_fee, note_change, send_letter)


def _customer(ctx: ToolContext) -> str:
    """A case is about its own customer, whatever the model was talked into: so no tool takes one from it."""
    return str(ctx.input["customer_id"])


def _made(answer: Any, path: str) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise RetryableError(f"The office did not say what it made of {path}: {answer!r:.100}")
    return answer
