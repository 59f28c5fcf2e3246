"""Jupyter: cards, magics, completion and progress bars."""
