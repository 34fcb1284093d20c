"""The Liquid environment that templates run in: which tags and filters there are, and what each may cost.

It is built from nothing but a list: no file loading, no includes, no clock (`now`, `today`, `date` are gone), no text
that becomes a template. Every filter is wrapped: what goes in and comes out is measured, and the sum is a budget, so a
chain of harmless filters cannot fill the memory. Numbers keep their digits: arithmetic is decimal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from decimal import Decimal
from functools import wraps
from io import StringIO
from typing import Any, TextIO

from liquid import BoundTemplate, Environment, Mode, RenderContext, StrictDefaultUndefined
from liquid.ast import Node
from liquid.builtin import content, illegal, output
from liquid.builtin.expressions import LoopExpression
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.builtin.filters import array, misc, string
from liquid.builtin.tags import assign_tag, capture_tag, case_tag, comment_tag, for_tag, if_tag, unless_tag
from liquid.builtin.tags.inline_comment_tag import InlineCommentTag
from liquid.exceptions import FilterArgumentError, LiquidSyntaxError, ResourceLimitError, UndefinedError
from liquid.expression import Expression
from liquid.output import LimitedStringIO
from liquid.undefined import is_undefined
from liquid.utils import ReadOnlyChainMap

from casework.graph import liquid_numbers
from casework.graph.words import shown
from casework.values import dumps

MAX_ITEM = 256 * 1024
"""Largest text in characters, and longest list, that a filter takes or gives."""
MAX_WORK = 8 * 1024 * 1024
"""Characters and items that the filters of one rendering may handle together."""


class Object(dict[str, Any]):
    """A JSON object that is written as JSON."""

    def __str__(self) -> str:
        return dumps(self)


class Budget:
    """What one rendering has left; spent by its filters."""

    def __init__(self) -> None:
        self.left = MAX_WORK

    def spend(self, amount: int) -> None:
        """Take `amount`, or refuse.

        Raises:
            FilterArgumentError: the budget is used up.
        """
        self.left -= amount
        if self.left < 0:
            raise FilterArgumentError("the template asks for too much work", token=None)


BUDGET: ContextVar[Budget] = ContextVar("casework_template_budget")


class _Output(output.OutputNode):
    """`{{ value }}`: lists and objects are written as JSON."""

    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        return buffer.write(written(self.expression.evaluate(context)))


class _For(for_tag.ForNode):
    """`for`: what it walks is measured first, because the library skips to an offset one by one."""

    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        BUDGET.get().spend(_size(self.expression.iterable.evaluate(context)))
        return super().render_to_output(context, buffer)


class _ForTag(for_tag.ForTag):
    node_class = _For


class _OutputTag(output.Output):
    node_class = _Output


def written(value: Any) -> str:
    """How a value stands in the output."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return dumps(value) if isinstance(value, (list, tuple)) else str(value)


def _buffer(limit: int) -> LimitedStringIO:
    # The library's default translates a carriage return to a line feed; data is written as it is.
    return LimitedStringIO(limit=limit, newline="")


class _Context(RenderContext):
    """A context without the library's own `now` and `today`."""

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scope = ReadOnlyChainMap(self.locals, self.globals, self.counters)

    def get_buffer(self, buf: TextIO | None = None) -> StringIO:
        """A stream for a part of the output, within what is left of the limit."""
        return _buffer(MAX_ITEM - (buf.size if isinstance(buf, LimitedStringIO) else 0))


class _Template(BoundTemplate):
    context_class = _Context

    def _get_buffer(self) -> StringIO:
        return _buffer(MAX_ITEM)


class SealedEnvironment(Environment):
    """The environment described above."""

    template_class = _Template
    block_nesting_limit = 10
    context_depth_limit = 20
    loop_iteration_limit = 1000
    local_namespace_limit = 1024 * 1024
    output_stream_limit = MAX_ITEM

    def __init__(self) -> None:
        super().__init__(tolerance=Mode.STRICT, undefined=StrictDefaultUndefined, strict_filters=True)

    def setup_tags_and_filters(self, *, extra: bool = False) -> None:  # noqa: ARG002 - the library's signature
        """Register what there is, and nothing else."""
        for tag in _TAGS:
            self.add_tag(tag)
        for name, function in {**_TEXT, **_LISTS, **liquid_numbers.FILTERS}.items():
            self.add_filter(name, _measured(name, function))
        # `default` is the one filter that may be asked about what is not there.
        self.add_filter("default", misc.default)


def refuse_loose_ranges(template: BoundTemplate) -> None:
    """Refuse a range like `(1..9)` that stands elsewhere than in a `for`: its cost would not be measured.

    Raises:
        LiquidSyntaxError: there is one.
    """
    static = RenderContext(template)
    nodes: list[Node] = list(template.nodes)
    while nodes:
        node = nodes.pop()
        nodes.extend(node.children(static, include_partials=False))
        for expression in node.expressions():
            _refuse_range(expression, in_loop=False)


def _refuse_range(expression: Expression, *, in_loop: bool) -> None:
    if isinstance(expression, RangeLiteral) and not in_loop:
        raise LiquidSyntaxError("a range stands in a `for` and nowhere else", token=expression.token)
    for child in expression.children():
        _refuse_range(child, in_loop=isinstance(expression, LoopExpression) and child is expression.iterable)


def _measured(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def measured(*args: Any, **kwargs: Any) -> Any:
        budget = BUDGET.get()
        sizes = [_size(arg) for arg in args]
        budget.spend(1 + sum(sizes))
        if name in ("replace", "join"):
            budget.spend(_product(name, args))
        try:
            made = function(*args, **kwargs)
        except (liquid_numbers.RefusedError, ResourceLimitError, UndefinedError):
            raise
        except Exception:  # noqa: BLE001 - the library's words for it are Python's
            rest = f" with {', '.join(map(shown, args[1:]))}" if args[1:] else ""
            raise liquid_numbers.RefusedError(f"{name} cannot be used on {shown(args[0])}{rest}") from None
        budget.spend(_size(made))
        return made

    return measured


def _product(name: str, args: tuple[Any, ...]) -> int:
    """The size of what `replace` and `join` make, before they make it."""
    if name == "join":
        return _size(args[0]) * _size(args[1] if len(args) > 1 else " ")
    text, old = str(args[0]), str(args[1]) if len(args) > 1 else ""
    return (text.count(old) if old else len(text) + 1) * _size(args[2] if len(args) > 2 else "")


def _size(value: Any) -> int:
    if is_undefined(value):
        str(value)  # raises, naming what is not there
    if isinstance(value, int):
        return min(value.bit_length(), 1000)
    if isinstance(value, range):
        size = max(value.stop - value.start, 0)
    else:
        size = len(value) if isinstance(value, (str, list, tuple, dict)) else 1
    if size > MAX_ITEM:
        raise FilterArgumentError(f"a value of {size} characters or items is too large; at most {MAX_ITEM}", token=None)
    return size


_KINDS = {
    "int": "a number", "float": "a number", "Number": "a number", "str": "a text", "list": "a list",
    "dict": "an object", "Object": "an object", "bool": "a truth value", "NoneType": "nothing", "range": "a range",
}  # fmt: skip
_KIND = re.compile(rf"(?<=found )({'|'.join(_KINDS)})\b|'({'|'.join(_KINDS)})'(?= and |$)")


def in_words(error: Exception) -> str:
    """What went wrong in a template, in one line that names no kind of value as Python does."""
    said = str(error).split("\n", 1)[0]
    return _KIND.sub(lambda found: _KINDS[found[1] or found[2]], said) if said else type(error).__name__


def _map(values: Any, key: object) -> list[Any]:
    if any(isinstance(each, str) for each in (values if isinstance(values, (list, tuple)) else [values])):
        raise liquid_numbers.RefusedError(f"map takes a list of objects, not {shown(values)}")
    # The library has a null of its own there, which no other filter knows.
    return [each if isinstance(each, _PLAIN) else None for each in array.map_(values, key)]


_PLAIN = (str, int, float, Decimal, list, tuple, dict)


def _json(value: Any) -> str:
    return dumps(value)


_TAGS = (
    content.Literal,
    _OutputTag,
    illegal.Illegal,
    if_tag.IfTag,
    unless_tag.UnlessTag,
    case_tag.CaseTag,
    _ForTag,
    for_tag.BreakTag,
    for_tag.ContinueTag,
    assign_tag.AssignTag,
    capture_tag.CaptureTag,
    comment_tag.CommentTag,
    InlineCommentTag,
)
_TEXT: dict[str, Callable[..., Any]] = {
    "append": string.append,
    "capitalize": string.capitalize,
    "downcase": string.downcase,
    "escape": string.escape,
    "json": _json,
    "lstrip": string.lstrip,
    "prepend": string.prepend,
    "remove": string.remove,
    "replace": string.replace,
    "rstrip": string.rstrip,
    "split": string.split,
    "strip": string.strip,
    "strip_newlines": string.strip_newlines,
    "truncate": string.truncate,
    "truncatewords": string.truncatewords,
    "upcase": string.upcase,
}
_LISTS: dict[str, Callable[..., Any]] = {
    "compact": array.compact,
    "concat": array.concat,
    "first": array.first,
    "join": array.join,
    "last": array.last,
    "map": _map,
    "reverse": array.reverse,
    "size": misc.size,
    "slice": string.slice_,
    "sort": array.sort,
    "uniq": array.uniq,
    "where": array.where,
}
