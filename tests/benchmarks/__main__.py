"""Runs the benchmarks: ``python -m tests.benchmarks launch overhead``, or ``make bench``."""

import sys

from tests.benchmarks.command import main

sys.exit(main())
