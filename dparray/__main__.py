"""``python -m dparray`` is the command ``dparray``."""

from __future__ import annotations

import sys

from dparray.cli import main

if __name__ == "__main__":
    sys.exit(main())
