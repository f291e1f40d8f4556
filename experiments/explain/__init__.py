"""Explanation of a late or missing object: the chain of causes at one receiver, from a trace or from captures."""
