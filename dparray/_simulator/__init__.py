"""_simulator."""
