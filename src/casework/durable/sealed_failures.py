"""Failures as they stand in a history, made readable: with encryption their words are encrypted too."""

from __future__ import annotations

from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter

from casework.errors import PayloadUnreadableError
from casework.values import loads


async def opened(converter: DataConverter, failure: Failure) -> None:
    """Put the words of `failure` back where they were; the reason why not, where this process cannot read them."""
    if not failure.HasField("encoded_attributes") or converter.payload_codec is None:
        return
    try:
        [payload] = await converter.payload_codec.decode([failure.encoded_attributes])
        failure.message = str(loads(payload.data)["message"])
    except PayloadUnreadableError as error:
        failure.message = f"({error})"
    except (ValueError, KeyError, TypeError):
        return
