"""``dp.explain``: show the plan of a pending array as text, rows and a picture.

Input: arrays. Output: an explanation; nothing is computed. Imports the scheduler, whose plans it
prints, and all layers below the tools.
"""
