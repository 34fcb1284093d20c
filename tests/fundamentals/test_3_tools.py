"""Tools: what an agent can do. Read after the task tree and the graph; one idea a test."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import pytest

from casework.agents import Repeat, Toolbox, ToolContext, tool
from casework.agents.invoke import invoke
from casework.errors import ToldError, ToolDeclarationError

BALANCES = {"alice": Decimal("10.50")}
PAID: dict[str, Decimal] = {}


@tool(effects=False)
def balance(account: str) -> Decimal:
    """The balance of an account in US dollars."""
    if account not in BALANCES:
        raise ToldError(f"There is no account {account!r}. Accounts: {', '.join(BALANCES)}.")
    return BALANCES[account]


@tool(repeat=Repeat.KEYED)
async def pay_out(ctx: ToolContext, account: str, amount: Decimal) -> dict[str, Decimal]:
    """Pay out an amount in US dollars."""
    PAID[ctx.key] = amount  # a destination that keeps one payment per key
    return {account: amount}


def context(key: str = "key-1", attempt: int = 1) -> ToolContext:
    return ToolContext("default", UUID(int=1), "work.1/exchange.1/pay_out.1", key, attempt)


def test_a_tool_is_a_typed_function() -> None:
    """AW-17. Its signature is what the model sees, its docstring what the model chooses by."""
    assert balance.schema.parameters["properties"] == {"account": {"type": "string"}}
    assert balance.schema.description == "The balance of an account in US dollars."
    assert balance("alice") == Decimal("10.50"), "it is still the function it was"


def test_a_tool_with_effects_says_why_repeating_it_is_safe() -> None:
    """DA-27. After a crash a tool may run again, so one that cannot say why that is safe is not registered."""
    with pytest.raises(ToolDeclarationError, match="safe to repeat"):

        @tool()
        def send_mail(to: str) -> None:
            """Send a mail."""


async def test_a_keyed_tool_passes_its_key_on() -> None:
    """DA-27. The key is the same at every attempt of one call, so the destination does it once."""
    await invoke(pay_out, context(attempt=1), {"account": "alice", "amount": Decimal("2.50")})
    await invoke(pay_out, context(attempt=2), {"account": "alice", "amount": Decimal("2.50")})
    assert {"key-1": Decimal("2.50")} == PAID


async def test_the_model_is_told_what_it_did_wrong() -> None:
    """DA-18. Wrong arguments and business refusals are told; the run goes on."""
    with pytest.raises(ToldError, match="argument 'account' is missing"):
        await invoke(balance, context(), {})
    with pytest.raises(ToldError, match=r"There is no account 'bob'\. Accounts: alice"):
        await invoke(balance, context(), {"account": "bob"})


async def test_money_keeps_its_digits() -> None:
    """Decimal in, Decimal out, plain data all the way."""
    assert str(await invoke(balance, context(), {"account": "alice"})) == "10.50"


def test_a_toolbox_suggests_the_name_that_was_meant() -> None:
    """AW-17. An unknown tool is told with the nearest name, never invented."""
    with pytest.raises(ToldError, match="Did you mean 'pay_out'"):
        Toolbox([balance, pay_out]).asked("payout")
