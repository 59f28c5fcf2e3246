"""Profiles, timers and placement reports: where work ran, when and why.

In: events of the hooks, and frames of the program. Out: records of work by line, as tables, pages,
timelines and traces. Imports all rows below the tools; nothing but the tools imports it.
"""
