"""What runs a scenario, and who watches."""
