"""Tests of JMS messages."""
