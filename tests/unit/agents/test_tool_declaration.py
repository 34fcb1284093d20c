"""What a tool must say before it is registered, and the schema that a model sees."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from casework.agents import Repeat, Toolbox, ToolContext, tool
from casework.errors import NotFoundError, ToldError, ToolDeclarationError


class Colour(Enum):
    RED = "red"


class Address(BaseModel):
    street: str


@tool(version="2", repeat=Repeat.KEYED, timeout=10)
def pay(
    ctx: ToolContext,
    amount: Annotated[Decimal, Field(gt=0, description="US dollars")],
    on: dt.date,
    colour: Colour = Colour.RED,
    address: Address | None = None,
    schema: str = "x",
) -> Decimal:
    """Pay an amount."""
    return amount


def test_the_schema_comes_from_the_signature_and_hides_the_context() -> None:
    """AW-17. Typed functions; Decimal is a number, docstring the description, the context not the model's business."""
    schema = pay.schema
    assert (schema.name, schema.description) == ("pay", "Pay an amount.")
    properties = schema.parameters["properties"]
    assert list(properties) == ["amount", "on", "colour", "address", "schema"]
    assert properties["amount"] == {"type": "number", "exclusiveMinimum": 0, "description": "US dollars"}
    assert properties["on"] == {"type": "string", "format": "date"}
    assert schema.parameters["required"] == ["amount", "on"]
    assert schema.parameters["additionalProperties"] is False


def test_arguments_arrive_typed() -> None:
    """AW-17. What the model sent as JSON becomes Decimal, date, enum and model; defaults fill in."""
    bound = pay.bind({"amount": Decimal("10.10"), "on": "2026-01-31", "address": {"street": "Main St"}})
    assert bound == {
        "amount": Decimal("10.10"),
        "on": dt.date(2026, 1, 31),
        "colour": Colour.RED,
        "address": Address(street="Main St"),
        "schema": "x",
    }
    assert str(bound["amount"]) == "10.10"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"on": "2026-01-31"}, "argument 'amount' is missing"),
        ({"amount": 1, "on": "2026-01-31", "collour": "red"}, "no argument 'collour', did you mean 'colour'?"),
        ({"amount": 0, "on": "2026-01-31"}, "argument 'amount' = 0"),
        ({"amount": "NaN", "on": "2026-01-31"}, "argument 'amount' = 'NaN'"),
        ({"amount": 1, "on": "yesterday"}, "argument 'on' = 'yesterday'"),
        ({"amount": 1, "on": "2026-01-31", "address": {}}, "argument 'address.street' is missing"),
        ([], "must be a JSON object, got []"),
        ("{broken", "must be a JSON object, got '{broken'"),
        (None, "must be a JSON object, got None"),
    ],
)
def test_wrong_arguments_are_told_with_field_value_and_remedy(arguments: Any, says: str) -> None:
    """AW-17. The model is told what is wrong, what it sent, and what the tool takes."""
    with pytest.raises(ToldError) as caught:
        pay.bind(arguments)
    assert says in str(caught.value)
    assert "It takes: amount, on, colour, address, schema." in str(caught.value)


def test_a_huge_wrong_value_is_not_repeated_whole() -> None:
    """A message stays readable, whatever was sent."""
    with pytest.raises(ToldError) as caught:
        pay.bind({"amount": "x" * 1_000_000, "on": "2026-01-31", "y" * 1_000_000: 1})
    assert len(str(caught.value)) < 1000


def test_a_tool_with_effects_says_how_it_repeats() -> None:
    """DA-27. A tool with effects and no declaration is refused at registration; one that only reads needs none."""
    with pytest.raises(ToolDeclarationError, match="does not say how it is safe to repeat"):

        @tool()
        def charge(amount: int) -> None:
            """Charge."""

    @tool(effects=False)
    def look(amount: int) -> None:
        """Look."""

    assert look.repeat is Repeat.IDEMPOTENT


def _undocumented(amount: int) -> None: ...


def _starred(*amounts: int) -> None:
    """Doc."""


def _untyped(amount) -> None:  # type: ignore[no-untyped-def]
    """Doc."""


def _late_context(amount: int, ctx: ToolContext) -> None:
    """Doc."""


def _odd_type(amount: object, lock: pytest.MonkeyPatch) -> None:
    """Doc."""


def _unknown_type(amount: Missing) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Doc."""


def _yields(amount: int) -> Any:
    """Doc."""
    yield amount


def _fine(amount: int) -> None:
    """Doc."""


async def _async_fine(amount: int) -> None:
    """Doc."""


def _of_context(ctx: ToolContext, amount: int) -> None:
    """Doc."""


def _looks_elsewhere(ctx: ToolContext, sum_of_it: int) -> None: ...


def _looks(ctx: ToolContext, amount: int, patience: int = 1) -> None: ...


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (_undocumented, {}, "no docstring"),
        (_starred, {}, "no name for a model"),
        (_untyped, {}, "'amount' has no annotation"),
        (_late_context, {}, "'ctx' must come first"),
        (_odd_type, {}, "type without JSON form"),
        (_unknown_type, {}, "annotation cannot be read"),
        (_yields, {}, "yields"),
        (_fine, {"timeout": 60}, "timeout=60"),
        (_fine, {"timeout": 0}, "timeout=0"),
        (_fine, {"timeout": float("nan")}, "timeout=nan"),
        (_fine, {"version": " "}, "version=' ' is blank"),
        (_fine, {"name": "Bad Name"}, "'Bad Name' is not usable"),
        (_fine, {"name": "a.b"}, "'a.b' is not usable"),
        (_fine, {"name": "final_answer"}, "reserved"),
        (_fine, {"repeat": "sometimes"}, "repeat='sometimes' is not known"),
        (_fine, {"repeat": Repeat.VERIFY}, "belong together"),
        (_fine, {"verify": print}, "belong together"),
        (_fine, {"effects": False, "repeat": Repeat.KEYED}, "Drop one of the two"),
        (_fine, {"repeat": Repeat.TRANSACTIONAL}, "make it async"),
        (_fine, {"repeat": Repeat.KEYED}, "it cannot pass on ctx.key"),
        (_async_fine, {"repeat": Repeat.TRANSACTIONAL}, "it cannot write through ctx.connection"),
        (_of_context, {"repeat": Repeat.VERIFY, "verify": _looks_elsewhere}, "the tool's own parameters: ctx, amount"),
        (_of_context, {"repeat": Repeat.VERIFY, "verify": _fine}, "verify= cannot be called as the tool is"),
        (_fine, {"repeat": Repeat.VERIFY, "verify": 5}, "verify= cannot be called as the tool is"),
    ],
)
def test_what_cannot_be_called_safely_is_refused(function: Any, options: dict[str, Any], says: str) -> None:
    """DA-27, AW-17. Refused when it is registered, naming the tool and the remedy."""
    given = {"repeat": Repeat.IDEMPOTENT, "name": "some_tool", **options}
    with pytest.raises(ToolDeclarationError) as caught:
        tool(**given)(function)
    assert says in str(caught.value)


def test_a_verify_that_can_be_called_as_the_tool_is_accepted() -> None:
    """DA-27. More parameters with defaults do no harm."""
    made = tool(name="some_tool", repeat=Repeat.VERIFY, verify=_looks)(_of_context)
    assert made.verify is _looks


def test_a_bare_decorator_says_what_to_write() -> None:
    """AW-17. Without parentheses nothing is declared."""
    with pytest.raises(ToolDeclarationError, match=r"'_fine': @tool stands without .* @tool\(effects=False\)"):
        tool(_fine)


def test_a_toolbox_finds_suggests_and_refuses() -> None:
    """AW-17. An unknown name is told to the model with the nearest one, never invented; two tools share no name."""
    box = Toolbox([pay])
    assert box.get("pay") is pay
    assert box.find("pax") is None
    with pytest.raises(NotFoundError, match="Did you mean 'pay'"):
        box.get("pax")
    with pytest.raises(ToldError, match="Tools: pay"):
        box.asked("delete_everything")
    with pytest.raises(ToolDeclarationError, match="Two tools are named 'pay'"):
        Toolbox([pay, pay])
    with pytest.raises(ToolDeclarationError, match="Decorate the function"):
        Toolbox([print])  # type: ignore[list-item]
    assert box.only(["pay"]).names == ("pay",)
    with pytest.raises(NotFoundError):
        box.only(["pay", "nothing"])
