"""``dp.explain``: the plan of a pending array, as text, rows and a picture.

In: arrays. Out: an explanation; nothing is computed. Imports the scheduler, whose plans it prints,
and all rows below the tools.
"""
