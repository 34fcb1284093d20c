"""Secrets that a text names: `db_password=...`, `"client_secret": "..."`, `Authorization: Token ...`.

A name is taken apart at its joints (`_`, `-`, `.`, a capital), so that `refresh_token` is one and `max_tokens` is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_WORDS = frozenset({
    "pass", "passwd", "password", "passphrase", "passcode", "pwd", "cred", "creds", "credential", "credentials",
    "secret", "token", "key", "apikey", "authorization", "auth", "sig",
})  # fmt: skip
_SEVERAL = frozenset({"passwords", "secrets", "tokens", "keys"})
"""In names of variables; in a text these are ordinary words, or counts."""
_ENDINGS = ("password", "passwd", "passphrase", "secret", "token", "apikey", "credentials", "authorization")
"""Of names that are written in one: PGPASSWORD, authtoken."""
_FORMS = frozenset({"value", "hash", "base", "base64", "b64", "data", "string", "text"})
"""Last parts that say how the secret is written."""
_ABOUT = frozenset({
    "enabled", "disabled", "length", "file", "path", "dir", "ttl", "timeout", "seconds", "name", "id", "count", "limit",
    "type", "policy", "version", "algorithm",
})  # fmt: skip
"""Last parts of variables that tell about a secret, and not the secret."""
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})
_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-]+")
_NAME = re.compile(r"""(?<![\w.\-])([\w.\-]++)\\*['"]?[ \t]*+[=:]>?[ \t]*+""")
_VALUE = re.compile(
    r"""(?P<open>['"])(?P<quoted>(?:\\.|(?!(?P=open))[^\\\n])*+)"""
    r"""|(?P<escaped>\\+['"])(?P<inner>(?:(?!(?P=escaped))[^\n])*+)"""
    r"""|(?P<bare>(?:[^\s&,;'"]|['"](?=\w))++)"""
)
_HEADER = re.compile(r"""(?P<bare>(?i:digest\b)[^\n]*+|(?:[A-Za-z][\w\-]*+[ ]++)?[^\s,;'"]++)""")


def struck(text: str, by: str) -> str:
    """`text` with `by` in place of each named secret; quotes stay."""
    made, at = [], 0
    for begin, end in _places(text):
        made += [text[at:begin], by]
        at = end
    return "".join(made) + text[at:]


def values(text: str) -> Iterator[str]:
    """The named secrets of `text`."""
    return (text[begin:end] for begin, end in _places(text))


def is_secret_variable(name: str, value: str) -> bool:
    """Whether a variable of the environment holds a secret, by its name."""
    parts = _parts(name)
    if name in _DIRECTORIES or parts[-1] in _ABOUT or (parts[-1] == "tokens" and value.isdigit()):
        return False
    return any(_is_word(part) or part in _SEVERAL for part in parts)


def _places(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for found in _NAME.finditer(text):
        if found.start() < at or not _is_secret(found[1]):
            continue
        if (value := _value_at(text, found.end(), _parts(found[1])[-1])) and value[0] < value[1]:
            yield value
            at = value[1]


def _value_at(text: str, at: int, last: str) -> tuple[int, int] | None:
    header = last.endswith("authorization") and not text.startswith(("'", '"', "\\"), at)
    found = (_HEADER if header else _VALUE).match(text, at)
    if found is None:
        return None
    group = next(name for name in ("bare", "quoted", "inner") if found.groupdict().get(name) is not None)
    return found.span(group)


def _is_secret(name: str) -> bool:
    parts = _parts(name)
    if len(parts) > 1 and parts[-1] in _FORMS:
        parts = parts[:-1]
    return _is_word(parts[-1])


def _is_word(part: str) -> bool:
    return part in _WORDS or part.endswith(_ENDINGS)


def _parts(name: str) -> list[str]:
    """The parts in small letters; at least one, and no empty one unless there is no other."""
    if len(name) > 200:
        name = name[-200:]
    return [part.lower().rstrip("0123456789") for part in _JOINT.split(name) if part] or [""]
