"""Traces of runs, by OpenTelemetry: which spans there are, what they are called, and how they leave the process.

Here belong the identity of spans (made of run and path, so that every process knows a span's id without asking), their
names and attributes, and the one place that speaks to the OpenTelemetry SDK (`tracer`, `start`). Who sees a span begin
and end does not belong here: that is the engine's interceptors in `durable` and the middleware of `api`. The SDK is an
optional extra: nothing but `tracer` and `sampling` imports it, and only `start` imports those, when traces are on.
Arguments, results, prompts, messages and texts of errors never go into a span.
"""
