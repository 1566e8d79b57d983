"""A client that is generated from the OpenAPI document is typed: what does not fit is found before it is sent."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from tests.web.conftest import Ask
from windlass import Windlass

HERE = Path(sys.executable).parent
PROGRAM = """
from client import EnqueueParcelSend, ParcelSendPayload, ParcelSendPayloadAddress

there = ParcelSendPayloadAddress(street="Rue Curie", zip=1)
right = EnqueueParcelSend(type="parcel.send", payload=ParcelSendPayload(to=there))
ParcelSendPayload(to="Rue Curie")
ParcelSendPayload(weight=2)
EnqueueParcelSend(type="mail.send", payload=right.payload)
"""


class Address(BaseModel):
    street: str
    zip: int


def generated(document: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The models that datamodel-code-generator makes of the document."""
    (folder / "openapi.json").write_bytes(document)
    options = ["--input-file-type=openapi", "--output-model-type=pydantic_v2.BaseModel", "--use-annotated"]
    options += ["--target-python-version=3.11", "--formatters=builtin", "--input=openapi.json", "--output=client.py"]
    subprocess.run([str(HERE / "datamodel-codegen"), *options], cwd=folder, check=True)
    spec = importlib.util.spec_from_file_location("client", folder / "client.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "client", module)  # pydantic looks its own names up there
    spec.loader.exec_module(module)
    return module


def mistakes(folder: Path) -> list[tuple[str, str]]:
    """What mypy finds wrong with the program."""
    (folder / "program.py").write_text(PROGRAM)
    command = [str(HERE / "mypy"), "--config-file=", "--follow-imports=silent", "--cache-dir=cache", "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return re.findall(r"program.py:(\d+): error: .*\[([\w-]+)\]", done.stdout)


@pytest.mark.timeout(60)
async def test_a_generated_client_is_typed(
    app: Windlass, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job(name="parcel.send")
    async def parcel(to: Address, weight: float = 1) -> Address:
        return to

    async with ask() as client:
        models: Any = generated((await client.get("http://windlass/openapi.json")).content, tmp_path, monkeypatch)
        to = models.ParcelSendPayloadAddress(street="Rue Curie", zip=1)
        asked = models.EnqueueParcelSend(type="parcel.send", payload=models.ParcelSendPayload(to=to), tags=["first"])
        text = asked.model_dump_json(by_alias=True, exclude_unset=True)
        sent = await client.post("/queue/enqueue", content=text, headers={"Content-Type": "application/json"})
        assert sent.status_code == 201, sent.text
        job = models.Job.model_validate_json(sent.content)
        await app.worker(drain=True).run()
        done = models.Job.model_validate((await client.get(f"/queue/{job.id}")).json())
    assert (job.type, job.payload, job.tags) == ("parcel.send", {"to": {"street": "Rue Curie", "zip": 1}}, ["first"])
    assert models.ParcelSendResult.model_validate(done.result).root.street == "Rue Curie"


@pytest.mark.timeout(60)
async def test_a_generated_client_refuses_what_does_not_fit(
    app: Windlass, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job(name="parcel.send")
    async def parcel(to: Address, weight: float = 1) -> None: ...

    async with ask() as client:
        models: Any = generated((await client.get("http://windlass/openapi.json")).content, tmp_path, monkeypatch)
    wrong: list[dict[str, Any]] = [
        {"to": {"street": "Rue Curie"}},
        {"to": "Rue Curie"},
        {"weight": 2},
        {"to": None},
        {},
    ]
    for payload in wrong:
        with pytest.raises(ValidationError):
            models.EnqueueParcelSend(type="parcel.send", payload=payload)
    with pytest.raises(ValidationError):
        models.EnqueueParcelSend(type="mail.send", payload={"to": {"street": "Rue Curie", "zip": 1}})
    assert mistakes(tmp_path) == [("6", "arg-type"), ("7", "call-arg"), ("8", "arg-type")]
