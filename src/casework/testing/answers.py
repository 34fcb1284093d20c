"""Who answers in a test: a language model by script, a person by rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from casework.agents.messages import Request
from casework.agents.model import ModelAnswer, ModelRequest
from casework.app import App
from casework.errors import FatalError, NotFoundError
from casework.graph.commands import Decided, Wait
from casework.local.house import House
from casework.local.outside import NobodyError, Outside
from casework.local.outside import Question as NodeQuestion
from casework.local.run import run_local
from casework.models.scripted import ScriptedModel
from casework.process.local.calling import Agent
from casework.process.tasks import Decision, Question, RunEnd
from casework.process.transactions import Transaction

PERSON = "tester"
"""Who decides where no other name is given."""


@dataclass
class ModelScript:
    """A language model for tests: the n-th answer of a conversation is the n-th that was written down for its agent.

    Answers written for no agent hold for those that have none of their own. `asked` has every request, in order. It is
    also a script of `App(scripts=...)`.
    """

    asked: list[ModelRequest] = field(default_factory=list)
    _answers: dict[str | None, list[ModelAnswer]] = field(default_factory=lambda: defaultdict(list))

    def says(self, text: str = "", *, output: Any = None, agent: str | None = None) -> Self:
        """Next, a final answer: a text, or `output` where the agent has an output schema."""
        self._answers[agent].append(ModelAnswer(text, output=output))
        return self

    def calls(self, tool: str, arguments: Mapping[str, Any] | None = None, *, agent: str | None = None) -> Self:
        """Next, a call of a tool."""
        answers = self._answers[agent]
        answers.append(ModelAnswer(requests=(Request(f"call-{len(answers) + 1}", tool, dict(arguments or {})),)))
        return self

    def __call__(self, request: ModelRequest) -> ModelAnswer:
        """The answer to a request.

        Raises:
            FatalError: none is written down for this place in the conversation.
        """
        self.asked.append(request)
        name = request.messages[0].agent if request.messages else ""
        answers = self._answers.get(name) or self._answers.get(None) or []
        place = sum(message.role == "assistant" for message in request.messages)
        if place >= len(answers):
            said = request.messages[-1].content if request.messages else ""
            raise FatalError(
                f"The model script has {len(answers)} answers for agent {name!r}, and it is asked for one more, after "
                f"{said!r:.200}. Add one with says() or calls()."
            )
        return answers[place]

    def agent(self, app: App, outside: Outside) -> Agent:
        """Runs the App's workflows in memory for agent tasks, with this model for each of their agents."""
        model = ScriptedModel("test", self)
        house = House(
            outside,
            lambda _agent, _providers: model,
            tools=app.toolbox,
            trees={(tree.name, tree.version): tree for tree in app.trees},
        )

        async def run(workflow: str, run_id: UUID, given: Mapping[str, Any]) -> RunEnd:
            pinned = app.bundles().get(workflow)
            if pinned is None:
                raise NotFoundError(f"The application has no workflow {workflow!r}. Add its manifest to the App.")
            end = await run_local(house, pinned, given, run_id)
            if end.status != "COMPLETED":
                raise FatalError(f"The run of workflow {workflow!r} FAILED: {end.reason}")
            return RunEnd(run_id, end.outcome, end.output)

        return run


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that came: its words (of a workflow's node, the node's id), and the decisions that were on offer."""

    text: str
    decisions: tuple[str, ...]
    transaction: Transaction | None = None


Condition = str | Callable[[Asked], bool]
"""When a rule holds: the question has this text in it, or the function says so."""


@dataclass
class _Rule:
    decision: Decision
    when: Condition
    left: int | None

    def holds(self, asked: Asked) -> bool:
        if self.left == 0:
            return False
        return self.when in asked.text if isinstance(self.when, str) else self.when(asked)


@dataclass
class ScriptedReviewer:
    """A person for tests: the first rule that holds for a question is the decision. `asked` has every question.

    It answers the questions of manual tasks, and those of workflows that agent tasks run.
    """

    asked: list[Asked] = field(default_factory=list)
    _rules: list[_Rule] = field(default_factory=list)

    def decides(
        self,
        decision: str,
        reason: str = "",
        *,
        when: Condition = "",
        times: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Self:
        """Add a rule; it holds for `times` questions, None for any number. `data` is what the decision brings."""
        self._rules.append(_Rule(Decision(decision, reason, PERSON, dict(data or {})), when, times))
        return self

    def __call__(self, transaction: Transaction, question: Question) -> Decision:
        """The decision on the question of a manual task.

        Raises:
            FatalError: no rule holds.
        """
        return self._decided(Asked(question.text, tuple(question.decisions), transaction))

    async def decide(self, question: NodeQuestion) -> Decided:
        """The decision on the question of a node.

        Raises:
            FatalError: no rule holds.
        """
        made = self._decided(Asked(question.node, question.decisions))
        return Decided(made.decision, made.reason, made.reviewer)

    async def signal(self, wait: Wait, path: str) -> Any:
        """No signal comes.

        Raises:
            NobodyError: always.
        """
        raise NobodyError(f"{path} waits for signal {wait.signal!r}, and no signal comes in a test of a Task.")

    def _decided(self, asked: Asked) -> Decision:
        self.asked.append(asked)
        rule = next((rule for rule in self._rules if rule.holds(asked)), None)
        if rule is None:
            raise FatalError(
                f"No rule of the reviewer holds for {asked.text!r:.200}; on offer are {', '.join(asked.decisions)}. "
                "Add one with decides()."
            )
        if rule.left is not None:
            rule.left -= 1
        return rule.decision
