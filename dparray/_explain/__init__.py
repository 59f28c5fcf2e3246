"""``dp.explain``: show the plan of a pending array as text, rows and a picture.

It prints the plans that ``_evaluate/schedule.py`` makes; nothing is computed.
In: arrays. Out: an explanation. Imports: rows up to ``tools``.
"""
