"""Settings of an application's own, beside windlass's."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, Field, SecretStr

from windlass import SettingsError
from windlass.settings import load, load_own


class Shop(BaseModel):
    folder: Path = Path("files")
    batch: int = Field(default=100, ge=1, le=1000)
    token: SecretStr | None = None


def test_the_environment_wins_over_the_table(tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text('namespace = "shop"\n[shop]\nfolder = "here"\nbatch = 7\n')
    found = load_own("shop", Shop, {"WINDLASS_SHOP_BATCH": "8"}, file)
    assert (found.folder, found.batch) == (Path("here"), 8)
    assert load({}, file).namespace == "shop"


@pytest.mark.parametrize(
    ("environ", "text", "told"),
    [
        ({"WINDLASS_SHOP_BATCH": "0"}, "", "WINDLASS_SHOP_BATCH is '0': Input should be greater than or equal to 1"),
        ({}, "[shop]\nbatch = 'x'\n", "[shop] batch is 'x': Input should be a valid integer"),
        ({}, "[shop]\nbach = 1\n", "[shop] sets bach: known are folder, batch, token"),
        ({}, "shop = 3\n", "sets shop to 3: expected a table [shop]"),
    ],
)
def test_a_mistake_is_named_with_its_place(environ: dict[str, str], text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_own("shop", Shop, environ, file)
    assert told in str(caught.value)


def test_a_secret_is_not_quoted(tmp_path: Path) -> None:
    class Strict(BaseModel):
        token: SecretStr = Field(min_length=20)

    with pytest.raises(SettingsError) as caught:
        load_own("shop", Strict, {"WINDLASS_SHOP_TOKEN": "hunter2"}, None)
    assert "WINDLASS_SHOP_TOKEN" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_what_has_to_be_set_is_named() -> None:
    class Needed(BaseModel):
        folder: Path

    with pytest.raises(SettingsError, match="WINDLASS_SHOP_FOLDER is not set"):
        load_own("shop", Needed, {}, None)
