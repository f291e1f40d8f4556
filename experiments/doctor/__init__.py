"""What the parameters of a scenario imply before it runs: rules, each with an advice that changes the scenario."""
