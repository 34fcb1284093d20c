"""Constructor injection: by type, checked at the start, naming the Task that lacks something."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from dishka import Provider, Scope, provide

from casework.errors import FatalError, ProcessDeclarationError
from casework.process.injection import TaskConnection, injector

CLOSED: list[str] = []


class Pool:
    pass


class Letters:
    def __init__(self, pool: Pool) -> None:
        self.pool = pool


class Validate:
    def __init__(self, letters: Letters, pool: Pool) -> None:
        self.letters = letters
        self.pool = pool


class Bare:
    pass


class Modules(Provider):
    """A module with a resource that is opened and closed."""

    letters = provide(Letters, scope=Scope.REQUEST)

    @provide(scope=Scope.APP)
    async def pool(self) -> AsyncIterator[Pool]:
        yield Pool()
        CLOSED.append("pool")


class NoPool(Provider):
    letters = provide(Letters, scope=Scope.REQUEST)


async def test_a_task_gets_what_its_constructor_asks_for() -> None:
    """What lives as long as the worker is made once, what belongs to one Task's work each time; and all is closed."""
    made = injector({"Task 'validate'": Validate, "Task 'bare'": Bare}, [Modules()])
    async with made.made(Validate) as first, made.made(Validate) as second, made.made(Bare) as bare:
        assert first.pool is second.pool is first.letters.pool
        assert first is not second
        assert first.letters is not second.letters
        assert isinstance(bare, Bare)
    CLOSED.clear()
    await made.close()
    assert CLOSED == ["pool"]


async def test_a_module_is_replaced_in_a_test() -> None:
    """A later module goes before an earlier one, so a test gives its own."""

    class Fake(Pool):
        pass

    class Fakes(Provider):
        @provide(scope=Scope.APP)
        def pool(self) -> Pool:
            return Fake()

    made = injector({"Task 'validate'": Validate}, [Modules(), Fakes()])
    async with made.made(Validate) as task:
        assert isinstance(task.pool, Fake)


def refusal(users: dict[str, type[Any]], *modules: Provider) -> str:
    with pytest.raises(ProcessDeclarationError) as raised:
        injector(users, modules)
    return str(raised.value)


def test_a_missing_provider_names_the_task() -> None:
    """At the start, not at the first Transaction: each Task that lacks something is named, with the type."""
    said = refusal({"Task 'validate'": Validate, "Task 'bare'": Bare, "Task 'send'": Letters})
    assert "Task 'validate': no module provides Letters, which its constructor asks for. Add a provider" in said
    assert "Task 'send': no module provides Pool, which its constructor asks for" in said
    assert "bare" not in said


def test_a_missing_provider_is_found_through_others() -> None:
    """What is missing for a thing that a Task asks for is told with the Task and the way to it."""
    said = refusal({"Task 'validate'": Validate}, NoPool())
    assert said == (
        "Task 'validate': no module provides Pool, which its constructor asks for (through Letters). "
        "Add a provider of it."
    )
    assert "which Letters asks for" in refusal({"Task 'bare'": Bare}, NoPool())


def test_a_constructor_that_cannot_be_served_is_refused() -> None:
    """No type, a default, any number of things: each is named with its parameter and what to write."""

    class Untyped:
        def __init__(self, pool) -> None:  # type: ignore[no-untyped-def]  # the mistake
            pass

    class Default:
        def __init__(self, limit: int = 5) -> None:
            pass

    class Any_:
        def __init__(self, *pools: Pool) -> None:
            pass

    class Elsewhere:
        def __init__(self, pool: NotThere) -> None:  # type: ignore[name-defined] # noqa: F821  # the mistake
            pass

    said = refusal({"Task 'a'": Untyped, "Task 'b'": Default, "Task 'c'": Any_, "Task 'd'": Elsewhere}, Modules())
    assert "Task 'a': parameter 'pool' of its constructor has no type" in said
    assert "Task 'b': parameter 'limit' of its constructor has a default" in said
    assert "Task 'c': parameter 'pools' of its constructor takes any number" in said
    assert "Task 'd': the types of its constructor cannot be read: name 'NotThere' is not defined" in said


class Rows:
    def __init__(self, connection: TaskConnection) -> None:
        self.connection = connection


class Writes:
    def __init__(self, rows: Rows, pool: Pool) -> None:
        self.rows = rows
        self.pool = pool


async def test_a_repository_gets_the_connection_of_the_transaction_at_hand() -> None:
    """BP-7. A module's repository asks for TaskConnection, and each Task's has that of its own Transaction."""
    module = Modules()
    module.provide(Rows, scope=Scope.REQUEST)
    made = injector({"Task 'writes'": Writes}, [module])
    async with made.made(Writes, "one") as first, made.made(Writes, "two") as second, made.made(Writes) as third:
        assert (first.rows.connection.open, second.rows.connection.open) == ("one", "two")
        assert first.pool is third.pool
        with pytest.raises(FatalError, match="Derive it from TransactionalTask"):
            _ = third.rows.connection.open
    await made.close()
