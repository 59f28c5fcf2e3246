"""The public functions: rules call them, so that rules of traced arrays are recorded themselves."""

from __future__ import annotations

import sys
from typing import Any

dp: Any = sys.modules["dparray"]
