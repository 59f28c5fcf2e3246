"""_notebook."""
