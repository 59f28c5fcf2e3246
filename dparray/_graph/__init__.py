"""_graph."""
