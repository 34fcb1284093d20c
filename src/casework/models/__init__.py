"""Language models: adapters of the port `casework.agents.model.LanguageModel`.

Here: scripted models, the adapter to real providers through pydantic-ai, and the catalogue that finds the model a
reference means. Not here: what is asked and when (`durable`), what an agent is (`graph`). Retries belong to the engine:
an adapter asks once and sorts what goes wrong. Knows no database.
"""
