"""The libraries that compute what dparray has no kernels for, over the same memory, a file each.

Input: layouts. Output: a library's arrays over their memory, and layouts over a library's memory.
Only the file of a library imports it, at its first use.
"""
