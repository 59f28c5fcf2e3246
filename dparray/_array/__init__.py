"""_array."""
