"""What a child does in these tests."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any, BinaryIO

from windlass.apps.limited.frames import read, write
from windlass.apps.limited.refused import FileRefused


def serve(file: BinaryIO, out: BinaryIO, asked: dict[str, Any]) -> None:
    match asked["do"]:
        case "answer":
            while (data := read(file)) is not None:
                write(out, {"length": len(data), "loaded": sorted(name for name in sys.modules if "asyncio" in name)})
        case "tell":
            print("not a frame")  # noqa: T201  # as a library might
            write(out, {"content": file.read().decode(), "environment": sorted(os.environ)})
        case "refuse":
            raise FileRefused("it is no file of mine")
        case "break":
            raise RuntimeError("a secret of the parser")
        case "die":
            os.kill(os.getpid(), asked["signal"])
        case "hoard":
            write(out, {"bytes": len(b"x" * asked["bytes"])})
        case "spin":
            while True:
                pass
        case "wait":
            file.read()
        case "write":
            try:
                Path(asked["to"]).write_text("x")
            except OSError as error:
                write(out, {"error": type(error).__name__})
        case "open":
            opened: list[Any] = []
            try:
                while True:
                    opened.append(socket.socket())
            except OSError:
                write(out, {"opened": len(opened)})
        case _:
            raise AssertionError(asked)
