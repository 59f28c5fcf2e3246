"""_kernel."""
