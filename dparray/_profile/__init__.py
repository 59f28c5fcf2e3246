"""Profiles, timers and placement reports: where work ran, when and why.

Input: hook events, and frames of the program. Output: records of work by line, as tables, pages,
timelines and traces. Imports all layers below the tools; only the tools import it.
"""
