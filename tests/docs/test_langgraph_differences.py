"""What the page says of the peer's behaviour, each line as a small program against the installed version."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict, cast

import pytest
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel, ValidationError

THREAD: Any = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    said: str
    paid: str
    log: Annotated[list[str], operator.add]


class Answer(BaseModel):
    word: Literal["yes", "no"]


Body = Callable[[State], Any]


def graph(
    nodes: Mapping[str, Body],
    edges: Sequence[tuple[Any, str]],
    routes: Mapping[str, Callable[[State], Any]] | None = None,
    **compiled: Any,
) -> Any:
    """A graph that is kept in memory unless told otherwise."""
    made = StateGraph(State)
    for name, body in nodes.items():
        made.add_node(name, cast("Any", body))
    for edge in edges:
        made.add_edge(*edge)
    for name, route in (routes or {}).items():
        made.add_conditional_edges(name, route)
    return made.compile(**{"checkpointer": InMemorySaver(), **compiled})


def asks(question: str, key: str = "said") -> Body:
    return lambda state: {key: interrupt(question)}


def questions(state: Mapping[str, Any]) -> list[str]:
    return [each.value for each in state.get("__interrupt__", ())]


def says(words: str) -> Body:
    return lambda state: {"log": [words]}


def test_code_before_a_question_runs_again() -> None:
    told = []

    def node(state: State) -> State:
        told.append("mail")
        return {"said": interrupt("pay?")}

    made = graph({"ask": node}, [(START, "ask")])
    assert questions(made.invoke({}, THREAD)) == ["pay?"]
    assert made.invoke(Command(resume="yes"), THREAD)["said"] == "yes"
    assert told == ["mail", "mail"]


def test_an_answer_goes_to_whichever_question_comes_first() -> None:
    order = ["who?", "pay?"]

    def node(state: State) -> State:
        answers = {question: interrupt(question) for question in order}
        return {"said": answers["who?"], "paid": answers["pay?"]}

    made = graph({"ask": node}, [(START, "ask")])
    assert questions(made.invoke({}, THREAD)) == ["who?"]
    order.reverse()
    assert questions(made.invoke(Command(resume="Ann"), THREAD)) == ["who?"]
    end = made.invoke(Command(resume="Ann, again"), THREAD)
    assert (end["paid"], end["said"]) == ("Ann", "Ann, again")


def test_two_tools_that_ask_take_each_others_answers() -> None:
    asked: list[str] = []
    turn = {"a": threading.Event(), "b": threading.Event()}

    def ask(name: str, after: str) -> str:
        if first != name:
            assert turn[after].wait(30)
        asked.append(name)
        try:
            answer: str = interrupt(f"{name}?")
        finally:
            turn[name].set()
        asked.append(f"{name} takes {answer}")
        return answer

    @tool
    def pay_a() -> str:
        """Pay a."""
        return ask("a", "b")

    @tool
    def pay_b() -> str:
        """Pay b."""
        return ask("b", "a")

    built = StateGraph(MessagesState)
    built.add_node("tools", ToolNode([pay_a, pay_b]))
    built.add_edge(START, "tools")
    made = built.compile(checkpointer=InMemorySaver())
    calls = [ToolCall(name=name, args={}, id=name) for name in ("pay_a", "pay_b")]
    first = "a"
    started: Any = {"messages": [AIMessage("", tool_calls=calls)]}
    assert questions(made.invoke(started, THREAD)) == ["a?"]
    first = "b"
    for event in turn.values():
        event.clear()
    assert questions(made.invoke(Command(resume="yes to a"), THREAD)) == ["a?"]
    assert "b takes yes to a" in asked
    assert asked.count("a") == 2


def test_an_answer_to_one_of_two_branches_needs_an_id() -> None:
    made = graph({"a": asks("a?", "said"), "b": asks("b?", "paid")}, [(START, "a"), (START, "b")])
    open_now = {each.value: each.id for each in made.invoke({}, THREAD)["__interrupt__"]}
    with pytest.raises(RuntimeError, match="must specify the interrupt id"):
        made.invoke(Command(resume="yes"), THREAD)
    assert questions(made.invoke(Command(resume={open_now["b?"]: "B"}), THREAD)) == ["a?"]
    end = made.invoke(Command(resume={open_now["a?"]: "A"}), THREAD)
    assert (end["said"], end["paid"]) == ("A", "B")


@pytest.mark.parametrize("schema", [None, {"type": "string", "enum": ["yes", "no"]}])
def test_any_answer_is_taken_without_a_type_for_it(schema: dict[str, Any] | None) -> None:
    """A JSON Schema is passed on to whoever asks, and not looked at."""
    made = graph({"ask": lambda state: {"said": interrupt("pay?", response_schema=schema)}}, [(START, "ask")])
    made.invoke({}, THREAD)
    assert made.invoke(Command(resume="perhaps"), THREAD)["said"] == "perhaps"


def test_an_answer_that_is_not_of_the_type_is_refused() -> None:
    made = graph({"ask": lambda state: {"said": interrupt("pay?", response_schema=Answer).word}}, [(START, "ask")])
    made.invoke({}, THREAD)
    with pytest.raises(ValidationError):
        made.invoke(Command(resume={"word": "perhaps"}), THREAD)
    assert made.invoke(Command(resume={"word": "yes"}), THREAD)["said"] == "yes"


def test_a_question_can_be_swallowed() -> None:
    def node(state: State) -> State:
        try:
            return {"said": interrupt("pay?")}
        except Exception:  # noqa: BLE001  # as tools are often guarded
            return {"said": "not asked"}

    end = graph({"ask": node}, [(START, "ask")]).invoke({}, THREAD)
    assert (end["said"], questions(end)) == ("not asked", [])


def test_without_a_checkpointer_a_question_is_the_end() -> None:
    made = graph({"ask": asks("pay?")}, [(START, "ask")], checkpointer=None)
    assert questions(made.invoke({}, THREAD)) == ["pay?"]
    with pytest.raises(RuntimeError, match="without checkpointer"):
        made.invoke(Command(resume="yes"), THREAD)


def test_new_input_drops_an_open_question() -> None:
    made = graph({"ask": asks("pay?", "paid")}, [(START, "ask")])
    (before,) = made.invoke({"said": "first"}, THREAD)["__interrupt__"]
    (after,) = made.invoke({"said": "second"}, THREAD)["__interrupt__"]
    assert before.id != after.id
    assert made.get_state(THREAD).values["said"] == "second"


def test_a_node_that_failed_does_all_of_it_again() -> None:
    paid = []

    def node(state: State) -> State:
        paid.append("ann")
        if len(paid) == 1:
            raise ConnectionError("down")
        return {"said": "done"}

    built = StateGraph(State)
    built.add_node("pay", node, retry_policy=RetryPolicy(initial_interval=0.001))
    built.add_edge(START, "pay")
    built.compile().invoke({})
    assert paid == ["ann", "ann"]


def test_a_route_to_nowhere_ends_the_run(caplog: pytest.LogCaptureFixture) -> None:
    made = graph({"ask": says("asked")}, [(START, "ask")], {"ask": lambda state: "nowhere"})
    assert made.invoke({}, THREAD)["log"] == ["asked"]
    assert made.get_state(THREAD).next == ()
    assert "wrote to unknown channel branch:to:nowhere" in caplog.text


def test_unknown_keys_are_dropped() -> None:
    node: Body = lambda state: {"said": "yes", "payed": "typo"}  # noqa: E731
    assert graph({"ask": node}, [(START, "ask")]).invoke({"sayd": "typo"}, THREAD) == {"said": "yes", "log": []}


def test_two_writers_of_one_key_fail_as_they_write() -> None:
    one: Body = lambda state: {"said": "one"}  # noqa: E731
    made = graph({"a": one, "b": one}, [(START, "a"), (START, "b")])
    with pytest.raises(InvalidUpdateError):
        made.invoke({}, THREAD)


@pytest.mark.parametrize(("joined", "times"), [([("a", "end"), ("c", "end")], 2), ([(["a", "c"], "end")], 1)])
def test_unequal_branches_run_what_is_behind_them_twice(joined: list[tuple[Any, str]], times: int) -> None:
    nodes = {name: says(name) for name in ("a", "b", "c", "end")}
    made = graph(nodes, [(START, "a"), (START, "b"), ("b", "c"), *joined])
    assert made.invoke({}, THREAD)["log"].count("end") == times


def test_a_renamed_node_loses_the_answer() -> None:
    kept = InMemorySaver()
    graph({"ask": asks("pay?")}, [(START, "ask")], checkpointer=kept).invoke({}, THREAD)
    edited = graph({"ask_anew": asks("pay?")}, [(START, "ask_anew")], checkpointer=kept)
    assert edited.invoke(Command(resume="yes"), THREAD) == {"log": []}
    assert edited.get_state(THREAD).next == ()


def test_two_invocations_of_one_thread_both_run() -> None:
    both = threading.Barrier(2, timeout=30)

    def node(state: State) -> State:
        both.wait()
        return {"log": ["ran"]}

    made = graph({"work": node}, [(START, "work")])
    threads = [threading.Thread(target=made.invoke, args=({}, THREAD)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not both.broken
    assert made.get_state(THREAD).values["log"] == ["ran"]


def test_a_chosen_route_stays_chosen() -> None:
    chosen = []

    def route(state: State) -> str:
        chosen.append("left")
        return "left" if len(chosen) == 1 else END

    made = graph({"begin": says("begun"), "left": asks("pay?")}, [(START, "begin")], {"begin": route})
    made.invoke({}, THREAD)
    assert made.invoke(Command(resume="yes"), THREAD)["said"] == "yes"
    assert chosen == ["left"]


def test_an_older_checkpoint_goes_on_in_the_same_thread() -> None:
    nodes: dict[str, Body] = {"price": lambda state: {"said": "20"}, "pay": lambda state: {"paid": state["said"]}}
    made = graph(nodes, [(START, "price"), ("price", "pay")])
    assert made.invoke({}, THREAD)["paid"] == "20"
    before = next(each for each in made.get_state_history(THREAD) if each.next == ("pay",))
    assert made.invoke(None, made.update_state(before.config, {"said": "30"}))["paid"] == "30"
    assert made.get_state(THREAD).values["paid"] == "30"


def test_what_was_sent_is_joined_in_the_order_of_sending() -> None:
    """As MAP does, whichever was first."""
    last = threading.Event()

    def node(state: State) -> State:
        if state["said"] == "a":
            assert last.wait(30)
        last.set()
        return {"log": [state["said"]]}

    made = graph({"each": node}, [], {START: lambda state: [Send("each", {"said": name}) for name in "ab"]})
    assert made.invoke({}, THREAD)["log"] == ["a", "b"]
