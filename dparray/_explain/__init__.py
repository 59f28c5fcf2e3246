"""``dp.explain``: what is pending, what would run and why, as text, rows and a picture."""
