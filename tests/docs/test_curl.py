"""The blocks with curl and $URL on the page about HTTP are run against a server, and answered as the page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, source
from tests.support.until import until_sync
from windlass import Windlass

APP = """
from windlass import Windlass

app = Windlass("sqlite:///shop.db")

@app.job(name="mail.send", queue="mail")
async def send(to: str) -> None: ...
"""
PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
BLOCKS = [block for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "$URL" in block]
_CHANGING = re.compile(r'"requestId":"\w+"')


@pytest.mark.timeout(60)
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_line_with_curl_is_answered_as_it_shows(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP)
    app = Windlass(f"sqlite:///{tmp_path / 'shop.db'}")
    key = app.run_sync(app.keys.create("the page", owner="*", scopes=["admin"])).secret
    app.close()
    log = tmp_path / "log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "windlass", "serve", "shop:app", "--port", "0"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{source()}:{tmp_path}"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        until_sync(lambda: "/api/v1" in log.read_text(), "the server to say where it is", within=30)
        [url] = re.findall(r"http://\S+/api/v1", log.read_text())
        lines = 0
        for block in BLOCKS:
            for command, shown in re.findall(r"^\$ (curl .*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
                done = subprocess.run(
                    ["bash", "-c", command],
                    env={**os.environ, "URL": url, "KEY": key},
                    capture_output=True,
                    text=True,
                    check=True,
                )
                assert _CHANGING.sub("…", done.stdout.strip()) == _CHANGING.sub("…", shown.strip()), command
                lines += 1
    finally:
        process.terminate()
        process.wait(30)
    assert lines >= 3
