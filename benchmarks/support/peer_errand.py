"""The same errand by pydantic-ai's agent in a Temporal workflow, as its documentation makes one."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from pydantic_ai import Agent, ModelMessagesTypeAdapter, UsageLimits
from pydantic_ai.durable_exec.temporal import PydanticAIPlugin, PydanticAIWorkflow, TemporalDurability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import RunContext
from temporalio import workflow
from temporalio.client import Client
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

from benchmarks.support.errand import records_in, text_of

NO_LIMIT = UsageLimits(request_limit=None)


def script(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """As the script of ours: one record in each answer."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    order = next(str(part.content) for part in parts if isinstance(part, UserPromptPart))
    read = sum(isinstance(part, ToolReturnPart) for part in parts)
    if read < records_in(order):
        return ModelResponse(parts=[ToolCallPart("record", {"number": read}, f"call_{read}")])
    return ModelResponse(parts=[TextPart(f"{read} records read")])


def again(context: RunContext[None]) -> None:
    """Go on in a new history with the transcript, when Temporal advises it."""
    workflow.continue_as_new(args=[None, ModelMessagesTypeAdapter.dump_python(context.messages, mode="json")])


def reading(name: str, **options: Any) -> Agent[None, str]:
    """An agent with the tool, durable by the library's own capability."""
    made = Agent(FunctionModel(script), name=name, capabilities=[TemporalDurability(**options)])

    @made.tool_plain
    def record(number: int) -> str:
        """A record of five kilobytes."""
        return text_of(number)

    return made


plain = reading("plain")
rolling = reading("rolling", continue_as_new=again)


@workflow.defn
class PlainErrand(PydanticAIWorkflow):
    """The errand in one history."""

    __pydantic_ai_agents__ = (plain,)

    @workflow.run
    async def run(self, order: str) -> str:
        """Read as many records as the order says."""
        return (await plain.run(order, usage_limits=NO_LIMIT)).output


@workflow.defn
class RollingErrand(PydanticAIWorkflow):
    """The errand in as many histories as Temporal advises."""

    __pydantic_ai_agents__ = (rolling,)

    @workflow.run
    async def run(self, order: str | None, transcript: list[Any]) -> str:
        """Read as many records as the order says, or go on after those that were read."""
        before = ModelMessagesTypeAdapter.validate_python(transcript)
        return (await rolling.run(order, message_history=before, usage_limits=NO_LIMIT)).output


WORKFLOWS = [PlainErrand, RollingErrand]


async def connect(address: str) -> Client:
    """A client with the library's plugin, which says nothing of values that only might become too large."""
    quiet = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    runtime = Runtime(telemetry=TelemetryConfig(logging=quiet))
    return await Client.connect(address, plugins=[PydanticAIPlugin()], runtime=runtime)


async def start(client: Client, queue: str, records: int, *, rolling: bool) -> str:
    """Start an errand; its workflow id."""
    order, workflow_id = f"Read {records} records.", str(uuid4())
    if rolling:
        await client.start_workflow(RollingErrand.run, args=[order, []], id=workflow_id, task_queue=queue)
    else:
        await client.start_workflow(PlainErrand.run, order, id=workflow_id, task_queue=queue)
    return workflow_id
