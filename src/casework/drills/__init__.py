"""Proof by force: scenarios that kill workers, stop servers and race people, and count what came of it.

Here belong the scenarios of `casework drill`, the story of `casework demo`, and what they stand on: the stack as they
need it, the destination's process, an HTTP client, promises with their outcome. Here do not belong the command line,
printing, starting servers (`cli` does that and passes a stack in), or anything of one application: cases, policies and
destination come from the application's `Rehearsal`.
"""
