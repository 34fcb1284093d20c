"""A text that does not show itself."""

from __future__ import annotations

import hmac


class Secret:
    """A secret text: `str`, `repr` and f-strings show stars, `reveal` gives it to the one place that needs it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The secret itself. Never log it, never put it into a message."""
        return self._text

    def __repr__(self) -> str:
        return "Secret('**********')"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("A Secret is not pickled. Pass the setting's name and read it where it is needed.")
