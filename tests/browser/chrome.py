"""The browser that the tests use: an installed Chrome or Chromium, or else Debian's, installed where possible.

python tests/browser/chrome.py
"""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ON_A_MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
# Nothing but the pages under test is requested from the network.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chrome() -> str | None:
    """Return the path of a Chrome or Chromium: $CHROME where it is set, else the first one installed."""
    candidates = [os.environ["CHROME"]] if os.environ.get("CHROME") else [*NAMES, ON_A_MAC]
    return next((found for found in map(shutil.which, candidates) if found), None)


def driver_can_start() -> bool:
    """Whether the library that Playwright's driver needs on Linux is installed."""
    try:
        ctypes.CDLL("libatomic.so.1" if sys.platform == "linux" else None)
    except OSError:
        return False
    return True


def missing() -> str | None:
    """Say in one sentence what is missing and how to get it; None if nothing is."""
    if find_chrome() is None and os.environ.get("CHROME"):
        return f"There is no program at $CHROME, {os.environ['CHROME']}: set it to a Chrome or Chromium, or unset it."
    if find_chrome() is None:
        return (
            "The browser tests need Chrome or Chromium: install one (on Debian and Ubuntu, as root, "
            "apt-get install chromium), or set the environment variable CHROME to the path of yours."
        )
    if not driver_can_start():
        return "The browser tests need libatomic.so.1: on Debian and Ubuntu, as root, apt-get install libatomic1."
    return None


def can_install() -> bool:
    # Ubuntu's package of that name only points to a snap, which does not run in a container.
    os_release = Path("/etc/os-release")
    debian = os_release.exists() and "ID=debian" in os_release.read_text(encoding="utf-8").splitlines()
    return debian and os.geteuid() == 0 and not os.environ.get("CHROME")


def install() -> None:
    packages = "libatomic1" if find_chrome() else "libatomic1 chromium fonts-dejavu-core"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ("update -qq", f"install -qq --yes --no-install-recommends {packages}"):
        subprocess.run(["apt-get", *command.split()], env=environment, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    if missing() and can_install():
        print("Installing from Debian what the browser tests need.", flush=True)
        install()
    sys.exit(missing())
