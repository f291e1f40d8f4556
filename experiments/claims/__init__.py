"""Claims of the documents that the project is built from: a scenario and a criterion for each, and a verdict from its runs."""
