"""Small programs with a picture: ``python -m dparray.examples NAME`` runs one and writes it.

A program is a module whose function ``picture`` returns the pixels, 8-bit RGB.
"""

#: The programs, in the order of the gallery.
NAMES = ("mandelbrot", "reaction", "life", "spheres", "galaxy")
