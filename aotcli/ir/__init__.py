"""Frozen data between the stages. Standard library only."""
