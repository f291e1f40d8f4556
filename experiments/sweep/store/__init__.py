"""Where the rows of a sweep lie: Parquet datasets, their columns, and SQL over them."""
