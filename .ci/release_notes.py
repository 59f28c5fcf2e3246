"""Print the changelog of a version, for the page of its release.

    python .ci/release_notes.py 1.2.3

Exits with a message if `dparray.__version__` is another version, or the changelog does not have it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def notes(version: str, root: Path = ROOT) -> str:
    """Return the section of a version.

    Raises:
        SystemExit: the package or the changelog has another version.
    """
    text = (root / "dparray" / "__init__.py").read_text(encoding="utf-8")
    own = re.findall(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    if own != [version]:
        raise SystemExit(f"the package has version {', '.join(own)}, not {version}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    for section in re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        if heading.split()[0] == version:
            return body.strip()
    raise SystemExit(f"CHANGELOG.md has no section for {version}")


if __name__ == "__main__":
    print(notes(sys.argv[1]))
