"""Where a secret is found: settings name the place, and the secret is read each time that it is needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from casework.errors import SettingsError
from casework.settings.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretReference:
    """The name of an environment variable, or the path of a file whose text is the secret; exactly one of them.

    Raises:
        SettingsError: both are given, or none.
    """

    variable: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        if bool(self.variable.strip()) == bool(self.file.strip()):
            raise SettingsError(
                f"A secret has variable {self.variable!r} and file {self.file!r}. Give one of the two.", field="secret"
            )

    def read(self, field: str, environment: Mapping[str, str] | None = None) -> Secret:
        """The secret as it is now, for the setting `field`; the line's end of a file is no part of it.

        Raises:
            SettingsError: the variable is not set, the file cannot be read, or there is nothing in it.
        """
        text = (
            self._in_file(field)
            if self.file
            else (os.environ if environment is None else environment).get(self.variable, "")
        )
        if not text.strip():
            raise SettingsError(f"{field}: {self} holds no secret. {self._remedy}", field=field)
        return Secret(text)

    def _in_file(self, field: str) -> str:
        try:
            return Path(self.file).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else type(error).__name__
            raise SettingsError(f"{field}: {self} cannot be read ({why}). {self._remedy}", field=field) from None

    @property
    def _remedy(self) -> str:
        return "Write the secret into it." if self.file else "Set it for the worker."

    def __str__(self) -> str:
        return f"file {self.file!r}" if self.file else f"variable {self.variable!r}"
