"""Examination of a scenario before it runs: rules on its parameters, each with an advice that changes the scenario."""
