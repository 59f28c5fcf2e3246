"""_codegen."""
