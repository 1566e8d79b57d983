"""The blocks with curl and $URL on the page about HTTP are run against a server, and answered as the page shows."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.support.serving import serving
from windlass import Windlass

APP = """
from windlass import Windlass

app = Windlass("sqlite:///shop.db")

@app.job(name="mail.send", queue="mail")
async def send(to: str) -> None: ...
"""
PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
EVENT = re.compile(r"^event: (\w+)$", re.MULTILINE)
BLOCKS = [block for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "$URL" in block]
_CHANGING = re.compile(r'"requestId":"\w+"')


@pytest.mark.timeout(60)
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_line_with_curl_is_answered_as_it_shows(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    app = Windlass(f"sqlite:///{tmp_path / 'shop.db'}")
    key = app.run_sync(app.keys.create("the page", owner="*", scopes=["admin"])).secret
    job = app.enqueue_sync("mail.send", {"to": "ada"}).id
    app.close()
    with serving(tmp_path, "shop:app", "--worker") as server:
        url = f"{server.url}/api/v1"
        lines = 0
        for block in BLOCKS:
            for command, shown in re.findall(r"^\$ (curl .*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
                told = asked(command, {"URL": url, "KEY": key, "ID": job})
                if "curl -N" in command:
                    # A job that has ended already is not watched, so nothing is said of how.
                    assert set(EVENT.findall(shown)) - {"via"} <= set(EVENT.findall(told)), told
                else:
                    assert _CHANGING.sub("…", told.strip()) == _CHANGING.sub("…", shown.strip()), command
                lines += 1
    assert lines >= 8


def asked(command: str, names: dict[str, str]) -> str:
    """What a line prints; of a stream that does not end, what comes in the first two seconds."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        env={**os.environ, **names},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as line:
        try:
            told, complaint = line.communicate(timeout=2 if "curl -N" in command else 30)
        except subprocess.TimeoutExpired:
            line.send_signal(signal.SIGTERM)
            return line.communicate()[0]
    assert line.returncode == 0, complaint
    return told
