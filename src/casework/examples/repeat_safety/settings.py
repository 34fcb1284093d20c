"""The one setting of this example.

ADDRESS_OFFICE_URL
    Base URL of the office that keeps addresses, takes fees and sends letters; `office.py` is one. Default: none, and
    then three of the four tools say so. It has a prefix of its own: `CASEWORK_` belongs to the platform.
"""

from __future__ import annotations

import os

from casework.errors import FatalError

OFFICE_URL = "ADDRESS_OFFICE_URL"


def office_url() -> str:
    """The office's address, without a slash at the end.

    Raises:
        FatalError: none is set.
    """
    found = os.environ.get(OFFICE_URL, "").strip()
    if not found:
        raise FatalError(
            f"{OFFICE_URL} is not set. Start an office (python -m casework.examples.repeat_safety.office --port 8090) "
            f"and set {OFFICE_URL}=http://127.0.0.1:8090 for the worker."
        )
    return found.rstrip("/")
