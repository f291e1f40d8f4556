"""Parameter sweeps on Spark, in three layers: `spec` (what to run), `store` (Parquet datasets), `run` (execution).

`store` imports `spec`, `run` imports both. Modules are imported one by one, so that commands without Spark do not load it.
"""
