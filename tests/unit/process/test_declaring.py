"""Writing Tasks down: `@bot_task`, its kinds, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from casework.agents.tools import Repeat
from casework.errors import ProcessDeclarationError
from casework.process.declaring import bot_task, spec_of
from casework.process.policies import ErrorPolicy
from casework.process.tasks import AgentTask, Change, Kind, PlainTask, TaskContext, TransactionalTask
from casework.process.transactions import Transaction


class Plain(PlainTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return None


class InDatabase(TransactionalTask):
    async def run(self, transaction: Transaction, ctx: TaskContext) -> Change | None:
        return None


def test_a_task_has_a_stable_name_and_says_how_it_is() -> None:
    """A registered class is still itself, and carries its name, kind, repeat safety and policy."""
    policy = ErrorPolicy(retries=2)

    @bot_task("send-letter", repeat=Repeat.KEYED, version="2", timeout=5, errors=policy)
    class Renamed(Plain):
        pass

    spec = spec_of(Renamed)
    assert (spec.name, spec.cls, spec.kind, spec.repeat) == ("send-letter", Renamed, Kind.PLAIN, Repeat.KEYED)
    assert (spec.version, spec.timeout, spec.errors, spec.alone) == ("2", 5, policy, False)
    assert spec_of(bot_task("look", effects=False)(Plain)).repeat is Repeat.IDEMPOTENT
    assert spec_of(bot_task("call", effects=False, max_per_second=5)(Plain)).max_per_second == 5.0
    assert spec_of(bot_task("book")(InDatabase)).repeat is None


def test_a_subclass_is_not_registered_by_its_base() -> None:
    """A name belongs to one class: what derives from a Task registers itself."""

    @bot_task("first", effects=False)
    class First(Plain):
        pass

    class Second(First):
        pass

    with pytest.raises(ProcessDeclarationError, match="Second is no Task"):
        spec_of(Second)


class Nothing:
    pass


class Unfinished(PlainTask):
    pass


class Sync(PlainTask):
    def run(self, transaction: Transaction, ctx: TaskContext) -> None:  # type: ignore[override]  # the mistake
        return None


class OtherParameters(PlainTask):
    async def run(self, transaction: Transaction) -> None:  # type: ignore[override]  # the mistake
        return None


class Agent(AgentTask):
    async def input(self, transaction: Transaction) -> dict[str, Any]:
        return {}

    async def outcome(self, transaction: Transaction, end: Any) -> None:
        return None


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda: bot_task("Send", effects=False)(Plain), "'Send' is not usable"),
        (lambda: bot_task("finalizer", effects=False)(Plain), "station of every line"),
        (lambda: bot_task("a")(Nothing), "derives from no kind of Task. Take one of PlainTask"),  # type: ignore[type-var]
        (lambda: bot_task("a", effects=False)(Unfinished), "Unfinished lacks run"),  # type: ignore[type-abstract]
        (lambda: bot_task("a", effects=False)(Sync), "Write `async def run"),
        (lambda: bot_task("a", effects=False)(OtherParameters), r"Write `run\(self, transaction, ctx\)`"),
        (lambda: bot_task("a")(Plain), "why it is safe to repeat"),
        (lambda: bot_task("a", repeat="sometimes")(Plain), "repeat is 'sometimes'"),
        (lambda: bot_task("a", repeat=Repeat.TRANSACTIONAL)(Plain), "make it a TransactionalTask"),
        (lambda: bot_task("a", repeat=Repeat.VERIFY)(Plain), "has no `verify`"),
        (lambda: bot_task("a", repeat=Repeat.KEYED, effects=False)(Plain), "with effects=False"),
        (lambda: bot_task("a", repeat=Repeat.KEYED)(InDatabase), "safe to repeat by its kind"),
        (lambda: bot_task("a")(Agent), "names no workflow"),
        (lambda: bot_task("a", timeout=0)(InDatabase), "timeout is 0"),
        (lambda: bot_task("a", version="")(InDatabase), "version is ''"),
        *(
            (lambda rate=rate: bot_task("a", max_per_second=rate)(InDatabase), r"Task 'a': max_per_second is .*Give a")
            for rate in (0, -1, float("nan"), float("inf"), True, 10**400, 1001, 1e-9, "5", Decimal(5))
        ),
    ],
)
def test_what_could_not_be_run_is_refused(declare: Callable[[], Any], said: str) -> None:
    """Each mistake in a declaration names the task, what is wrong and what to write."""
    with pytest.raises(ProcessDeclarationError, match=said):
        declare()
