"""Storage of sweep results: Parquet datasets, their columns, and SQL queries over them."""
