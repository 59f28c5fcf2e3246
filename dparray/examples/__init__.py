"""Small programs with a picture: ``python -m dparray.examples NAME`` runs one and writes it.

In: the module of a program. Out: pixels, 8-bit RGB, from its function ``picture``. Imports: rows up
to ``tools``, as a user's program does.
"""

#: The programs, in the order of the gallery.
NAMES = ("mandelbrot", "reaction", "life", "spheres", "galaxy")
