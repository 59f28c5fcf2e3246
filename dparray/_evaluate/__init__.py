"""_evaluate."""
