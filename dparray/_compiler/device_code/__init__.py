"""What device code can do: overloads of Python, NumPy and the kernel language for the compiler."""
