"""The text that package indexes show: README without links that lead nowhere from there.

Where `[project.urls]` has a ``Source``, relative links lead to it; else their words are left.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)]+)\)")
_PICTURE = re.compile(r"<picture>.*?</picture>\n*", re.S)
_SOURCES = re.compile(r'\b(src|srcset)="(?!https?:)([^"]+)"')


def description(readme: str, source: str | None) -> str:
    """README for an index, with links to the source where there is one.

    Args:
        readme: the text of the file.
        source: the address of the repository, as ``https://host/group/name``.
    """
    if source is None:
        readme = _PICTURE.sub("", readme)
        return _LINK.sub(lambda found: "" if found[1] else found[2], readme)
    readme = _SOURCES.sub(rf'\1="{source}/raw/main/\2"', readme)
    return _LINK.sub(
        lambda found: (
            f"{found[1]}[{found[2]}]({source}/{'raw' if found[1] else 'blob'}/main/{found[3]})"
        ),
        readme,
    )


class Readme(MetadataHookInterface):
    """Fills in the field ``readme``, which `pyproject.toml` calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the field to the metadata that are in the file."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": description(text, source),
        }
