"""The zoo: protocols with one deliberate defect each, and the rules of a run that find them."""
