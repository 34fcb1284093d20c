"""From text to plain values, each with the line it stands on: YAML 1.2 (of which JSON is a part), read with care.

Only what JSON can say comes out. Numbers with a fraction are Decimals with the digits that were written. The text is
composed into nodes by the library and made into values here, so that aliases, depth, keys and tags are all counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from casework.errors import ManifestError
from casework.graph.origins import Path, line_of, where
from casework.graph.words import one_line
from casework.values import Plain, holdable

MAX_SIZE = 1024 * 1024
"""Largest manifest file, in bytes."""
MAX_DEPTH = 50
"""Deepest nesting."""
MAX_VALUES = 50_000
"""Most values in one file, aliases counted as often as they are used."""

_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Document:
    """One document of a file: its value, and the line (from 1) of each part of it."""

    value: Plain
    lines: Mapping[Path, int]

    def line(self, path: Path) -> int:
        """The line of `path`, or of the nearest part around it that has one."""
        return line_of(self.lines, path)


def read(text: str | bytes, name: str) -> list[Document]:
    """The documents of a file; empty ones are left out.

    Raises:
        ManifestError: the text is too large, not UTF-8, not YAML, or says what JSON cannot; names file and line.
    """
    text = _decoded(text, name)
    try:
        documents = [_document(node, name) for node in _composed(text) if node is not None]
        return [document for document in documents if document.value is not None]
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise _refusal(f"{name}{line}: this is not YAML: {error.problem or error.context}.") from None
    except RecursionError:
        raise _refusal(f"{name}: it is nested deeper than {MAX_DEPTH}. Flatten it.") from None
    except YAMLError as error:
        raise _refusal(f"{name}: this is not YAML: {str(error).splitlines()[0]}.") from None


def _refusal(said: str, place: str = "") -> ManifestError:
    return ManifestError(one_line(said), field=place)


def _decoded(text: str | bytes, name: str) -> str:
    size = len(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    if size > MAX_SIZE:
        raise _refusal(f"{name}: it has {size} bytes; at most {MAX_SIZE}. Split it into several files.")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _refusal(
                f"{name}: byte {error.start} ({error.object[error.start]:#04x}) is not UTF-8. Save the file as UTF-8."
            ) from None
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise _refusal(f"{name}:{line}: it holds a NUL character. Remove it.")
    # JSON allows tabs between its parts and YAML does not; inside JSON's texts a bare tab is not allowed anyway.
    return text.replace("\t", " ") if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") else text


def _composed(text: str) -> Iterator[Node | None]:
    composed: Iterator[Node | None] = YAML(typ="safe", pure=True).compose_all(text)
    return composed


def _document(node: Node, name: str) -> Document:
    maker = _Maker(name)
    value = maker.make(node, ())
    return Document(value, maker.lines)


class _Maker:
    """Makes the values of one document, counting."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.lines: dict[Path, int] = {}

    def make(self, node: Node, path: Path) -> Plain:
        self.lines[path] = line = node.start_mark.line + 1
        if len(self.lines) > MAX_VALUES:
            raise self._refused(line, path, f"it has more than {MAX_VALUES} values, aliases included. Split it")
        if len(path) > MAX_DEPTH:
            raise self._refused(line, path, f"it is nested deeper than {MAX_DEPTH}. Flatten it")
        if not isinstance(node, ScalarNode) and str(node.tag) not in (f"{_TAG}map", f"{_TAG}seq"):
            raise self._refused(line, path, f"the tag {node.tag} is not known here. Remove it")
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.make(item, (*path, i)) for i, item in enumerate(node.value)]
        assert isinstance(node, ScalarNode)
        return self._scalar(node, path)

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Plain]:
        made: dict[str, Plain] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                raise self._refused(line, path, "a key is not a text. Use a plain word")
            if str(key_node.tag) == f"{_TAG}merge":
                raise self._refused(
                    line, path, "merge keys (<<) are not taken. Write the fields out, or give an alias whole"
                )
            key = self._text(key_node.value, line, path, key_node.value)
            if key in made:
                raise self._refused(line, (*path, key), "this key stands here twice. Remove one")
            made[key] = self.make(value_node, (*path, key))
            self.lines[(*path, key)] = line
        return made

    def _scalar(self, node: ScalarNode, path: Path) -> Plain:
        line, tag, text = node.start_mark.line + 1, str(node.tag), str(node.value)
        kind = tag.removeprefix(_TAG)
        if kind in ("str", "timestamp"):
            return self._text(text, line, path)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in ("true", "yes", "on")
        if kind in ("int", "float"):
            return self._number(text, kind, line, path)
        raise self._refused(line, path, f"the tag {tag} is not known here. Remove it")

    def _text(self, text: str, line: int, path: Path, *key: str) -> str:
        """A text that can be kept as it is; its halves of characters are joined, as JSON writes them."""
        whole = _whole_characters(text)
        if held := unholdable(whole):
            raise self._refused(line, (*path, *key), f"it holds {held}. Remove it")
        return whole

    def _number(self, text: str, kind: str, line: int, path: Path) -> Plain:
        plain = text.replace("_", "")
        try:
            if kind == "int" and len(plain) <= 1000:
                return int(plain, 0) if plain[:2].lower() in ("0o", "0x", "0b") else int(plain)
            number = Decimal(plain)
        except (ValueError, ArithmeticError):
            raise self._refused(line, path, f"{text!r:.50} is no number. Put it in quotes if it is a text") from None
        if not number.is_finite() or abs(number.adjusted()) > 1000:
            raise self._refused(line, path, f"{text!r:.50} has no JSON form. Use a smaller number, or quotes")
        return number

    def _refused(self, line: int, path: Path, why: str) -> ManifestError:
        place = where(path)
        return _refusal(f"{self._name}:{line}: {place + ': ' if place else ''}{why}.", place)


def unholdable(text: str) -> str | None:
    """What of a text can be kept nowhere and would be replaced later, in words; None where all of it can be kept."""
    if holdable(text):
        return None
    return "a NUL character" if "\x00" in text else "half a character (a lone surrogate)"


def _whole_characters(text: str) -> str:
    """JSON writes a character beyond the basic plane as two halves; join them, refuse nothing else here."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
