"""Spans of runs, made by interceptors of the engine's SDK: from outside, so that workflow code knows nothing of them.

Here belongs who sees a span begin and end: the client that starts a run, the worker that carries one, the worker that
does one attempt of a step. What a span says and how it leaves the process is in `casework.telemetry`.

It moves like this. The place of the request that starts a run travels in the header of its Temporal workflow, and from
there in the header of each activity, as W3C Trace Context. An attempt is a span around its activity. The spans of the
run, its visits and exchanges are written when they are over, by the workflow's interceptor, from the times of the
engine's clock, and only where the engine does not replay.
"""
