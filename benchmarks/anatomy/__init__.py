"""Where one underwriting run spends its milliseconds, its rows and its bytes: `python -m benchmarks.anatomy`.

No peer stands beside it, so it is no benchmark of the table; `docs/concepts/what_a_run_costs.md` shows its figures.
"""
