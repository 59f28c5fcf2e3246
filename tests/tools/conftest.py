"""Fixtures of the tests of tools."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """Start headless Chromium from the Debian packages chromium and chromium-driver."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        reason = "the packages chromium and chromium-driver are not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    profile = tmp_path / "profile"
    for argument in (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-dev-shm-usage", "--force-device-scale-factor=1", "--window-size=1280,1000",
        f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(argument)
    window = webdriver.Chrome(options, webdriver.ChromeService(driver))
    window.set_script_timeout(60)
    yield window
    window.quit()
