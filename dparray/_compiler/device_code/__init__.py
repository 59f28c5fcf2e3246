"""_compiler.device_code."""
