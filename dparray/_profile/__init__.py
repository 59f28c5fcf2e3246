"""Profiles, timers and placement reports: where work ran, when and why.

In: hook events, and frames of the program. Out: records of work by line, as tables, pages,
timelines and traces. Imports: rows up to ``functions``; only the tools import it.
"""
