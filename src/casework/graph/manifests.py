"""Manifests: the resources a user writes, as pydantic models. Field names are camelCase outside, snake_case inside.

These models say what a manifest may look like, field by field. Whether a graph holds together (every edge leads
somewhere, every name is known) is said by `admission`.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    StringConstraints,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel

from casework.graph.durations import seconds_of
from casework.graph.fields import Address, Condition, Count, Duration, Price, Temperature
from casework.graph.origins import Origin
from casework.graph.places import Place, places_of
from casework.graph.words import nearest, shown

API_VERSION: Literal["casework.dev/v1alpha1"] = "casework.dev/v1alpha1"
END = "end"
"""The target of an edge that ends the run; no node may have this id."""

NodeType = Literal["AGENT", "CONDITION", "TOOL", "HUMAN_APPROVAL", "PARALLEL", "MAP", "SUBWORKFLOW", "WAIT"]
BranchType = Literal["AGENT", "TOOL", "HUMAN_APPROVAL", "SUBWORKFLOW", "WAIT"]
"""Node types that a branch of a PARALLEL or MAP may have."""
FANS = ("PARALLEL", "MAP")
"""Node types that have branches."""
MAX_PARALLEL = 10
"""Branches of one visit that are under way at one time, unless the node says otherwise."""

_NAME = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
_ID = r"^[A-Za-z_][A-Za-z0-9_-]*$"
_KEY = r"^[A-Za-z_][A-Za-z0-9_]*$"

Name = Annotated[str, StringConstraints(pattern=_NAME, max_length=63)]
"""Name of a resource: lower-case letters, digits and inner dashes."""
Identifier = Annotated[str, StringConstraints(pattern=_ID, max_length=63)]
"""Id of a graph node, or name of a tool or decision: it becomes a part of paths, so no dot, slash or blank."""
Key = Annotated[str, StringConstraints(pattern=_KEY, max_length=63)]
"""Key of an output: it is a name in expressions and templates."""


class Part(BaseModel):
    """A part of a manifest: frozen, no unknown fields; an absent field is left out when it is written."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    @model_serializer(mode="wrap")
    def _without_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Only fields: a null inside a schema or an argument is data and stays.
        return {name: value for name, value in handler(self).items() if value is not None}


class Metadata(Part):
    """What names a resource."""

    name: Name
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


Ending = Annotated[str, StringConstraints(min_length=1, max_length=100)]
"""What a run's `outcome` can be: a word of the application, as in `approved`."""


class DecisionSpec(Part):
    """One answer a reviewer may give.

    `outcome` becomes the run's where its edge ends the run, or where the edge that ends it later names it.

    `schema` is a JSON Schema for the decision as an object with `decision`, `reason` and `reviewer`.
    """

    name: Identifier
    json_schema: dict[str, Any] | None = Field(None, alias="schema")
    outcome: Ending | None = None


class Vertex(Part):
    """What a node of the graph and a branch have in common. Which fields it takes follows from its type."""

    id: Identifier
    type: NodeType
    agent_ref: Name | None = None
    input_template: str | None = None
    output_schema: dict[str, Any] | None = None
    tool: Identifier | None = None
    arguments: dict[str, Any] | None = None
    workflow_ref: Name | None = None
    duration: Duration | None = None
    signal: Identifier | None = None
    decisions: tuple[DecisionSpec, ...] | None = None

    @field_validator("type", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        # Other alphabets have letters whose capital is an ASCII letter; those are no words of ours.
        return value.strip().upper() if isinstance(value, str) and value.isascii() else value

    @property
    def duration_s(self) -> float | None:
        """How long a WAIT waits at most, in seconds, or None."""
        return None if self.duration is None else float(seconds_of(self.duration))

    def decision(self, name: str) -> DecisionSpec | None:
        """The decision of that name, or None."""
        return next((d for d in self.decisions or () if d.name == name), None)


class BranchSpec(Vertex):
    """A branch of a PARALLEL or MAP node: written as a node is, without edges and outputKey."""

    type: BranchType


class Node(Vertex):
    """A vertex of the graph. Which fields it takes follows from its type (see `admission`)."""

    output_key: Key | None = None
    expression: Condition | None = None
    items: str | None = None
    branches: Annotated[tuple[BranchSpec, ...], Field(max_length=100)] | None = None
    max_parallel: Annotated[Count, Field(ge=1, le=1000)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_written_out(cls, value: Any) -> Any:
        # Here and not as the field's default: nodes that have no branches are pinned without it.
        if isinstance(value, dict) and str(value.get("type", "")).strip().upper() in FANS:
            return value if value.keys() & {"maxParallel", "max_parallel"} else {**value, "maxParallel": MAX_PARALLEL}
        return value

    @cached_property
    def speaks(self) -> bool:
        """Whether a visit starts a turn of an agent, its own or that of a branch."""
        return self.type == "AGENT" or any(branch.type == "AGENT" for branch in self.branches or ())


class Edge(Part):
    """A way from a node to another or to `end`.

    `condition` is a decision's name on the edges of a HUMAN_APPROVAL node; elsewhere empty, `true`, `false` or CEL.
    An `onError` edge is followed when its node fails, and only then. An edge to `end` behind what was decided may name
    the decision's `outcome`, as after a TOOL that carries it out.
    """

    source: Identifier = Field(alias="from")
    target: Identifier = Field(alias="to")
    condition: Condition = ""
    on_error: StrictBool = False
    outcome: Ending | None = None

    @property
    def ends(self) -> bool:
        """Whether the run ends here."""
        return self.target == END


class AiWorkflowSpec(Part):
    """A graph: where it starts, its nodes, its edges in the order they are tried."""

    initial_node: Identifier
    nodes: Annotated[tuple[Node, ...], Field(min_length=1, max_length=1000)]
    edges: Annotated[tuple[Edge, ...], Field(max_length=5000)] = ()
    max_loops: Annotated[Count, Field(ge=1, le=100_000)] = 50
    policy_adoption: Literal["pinned", "next_turn"] = "pinned"
    input: dict[str, Any] | None = None

    @cached_property
    def _by_id(self) -> dict[str, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def _ways(self) -> dict[tuple[str, bool], tuple[Edge, ...]]:
        """The edges out of a node, those for its success (False) and those for its failure (True)."""
        ways: dict[tuple[str, bool], list[Edge]] = {}
        for edge in self.edges:
            ways.setdefault((edge.source, edge.on_error), []).append(edge)
        return {key: tuple(edges) for key, edges in ways.items()}

    @cached_property
    def places(self) -> dict[str, Place]:
        """The nodes with what the engine asks about them, by id."""
        return places_of(self.nodes, {node.id: self.ways(node.id) for node in self.nodes})

    def node(self, node_id: str) -> Node | None:
        """The node of that id, or None."""
        return self._by_id.get(node_id)

    def ways(self, node_id: str) -> tuple[Edge, ...]:
        """The edges out of a node that are followed when it succeeds, in order."""
        return self._ways.get((node_id, False), ())

    def rescues(self, node_id: str) -> tuple[Edge, ...]:
        """All onError edges out of a node; only the first is followed."""
        return self._ways.get((node_id, True), ())

    def rescue(self, node_id: str) -> Edge | None:
        """The edge that is followed when the node fails, or None."""
        return next(iter(self.rescues(node_id)), None)

    @cached_property
    def vertices(self) -> tuple[Vertex, ...]:
        """All nodes, each followed by its branches."""
        return tuple(each for node in self.nodes for each in (node, *(node.branches or ())))

    @cached_property
    def output_keys(self) -> tuple[str, ...]:
        """The names under which nodes store their outputs, each once, in the order of the nodes."""
        return tuple(dict.fromkeys(node.output_key for node in self.nodes if node.output_key))


class AiAgentSpec(Part):
    """An agent: whose model, which words, which tools it may ask for."""

    provider: Name
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    system_prompt: str = ""
    tools: tuple[Identifier, ...] = ()
    output_schema: dict[str, Any] | None = None
    max_exchanges: Annotated[Count, Field(ge=1, le=1000)] = 20


class KeyRef(Part):
    """Where a key is read from, when it is needed: an environment variable or a file. Never the key itself."""

    env: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)] | None = None
    file: Annotated[str, StringConstraints(min_length=1, max_length=1000)] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> KeyRef:
        if (self.env is None) == (self.file is None):
            raise ValueError("names one place: `env` or `file`")
        return self


class Prices(Part):
    """Prices in the currency of the account, per million tokens; exact."""

    input_per_million: Price = Decimal(0)
    output_per_million: Price = Decimal(0)


class LlmProviderSpec(Part):
    """A language model's provider. `type` is `scripted`, `openai` or another name of the provider layer."""

    type: Annotated[str, StringConstraints(min_length=1, max_length=100, strip_whitespace=True)]
    base_url: Address | None = None
    key_ref: KeyRef | None = None
    default_model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    script: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    temperature: Temperature | None = None
    max_tokens: Annotated[Count, Field(ge=1)] | None = None
    prices: Prices | None = None

    @model_validator(mode="after")
    def _script_goes_with_scripted(self) -> LlmProviderSpec:
        if self.type == "scripted" and self.script is None:
            raise ValueError("a provider of type scripted needs `script`, the name of a script of the App")
        if self.type != "scripted" and self.script is not None:
            near = nearest(self.type, ("scripted", "openai"))
            raise ValueError(f"`script` is for type scripted, not {shown(self.type)}{'.' if near else ''}{near}")
        return self


class Resource(Part):
    """What every kind has."""

    api_version: Literal["casework.dev/v1alpha1"] = API_VERSION
    metadata: Metadata

    @cached_property
    def origin(self) -> Origin | None:
        """Where it was read from; None where it was made in code. It is no part of what the resource is."""
        return None

    @property
    def name(self) -> str:
        """The name of the resource."""
        return self.metadata.name


class AiWorkflow(Resource):
    """A declarative graph of agents, tools, conditions and people."""

    kind: Literal["AiWorkflow"] = "AiWorkflow"
    spec: AiWorkflowSpec


class AiAgent(Resource):
    """An agent that AGENT nodes refer to by name."""

    kind: Literal["AiAgent"] = "AiAgent"
    spec: AiAgentSpec


class LlmProvider(Resource):
    """A provider that agents refer to by name."""

    kind: Literal["LlmProvider"] = "LlmProvider"
    spec: LlmProviderSpec


Manifest = AiWorkflow | AiAgent | LlmProvider
KINDS: dict[str, type[AiWorkflow] | type[AiAgent] | type[LlmProvider]] = {
    "AiWorkflow": AiWorkflow,
    "AiAgent": AiAgent,
    "LlmProvider": LlmProvider,
}
"""The kinds that an application is made of; `kinds` has those that are applied beside them."""
