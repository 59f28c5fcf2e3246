"""_functions."""
