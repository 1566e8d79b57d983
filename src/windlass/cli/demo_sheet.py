"""The demo's spreadsheet: customers as people type them, and its import with the application that ships."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.apps.installed import shipped

if TYPE_CHECKING:
    from windlass.app import Windlass
    from windlass.apps.imports.imports import Imports
    from windlass.apps.imports.order import Summary
    from windlass.client.handle import Handle

FILE = "customers.xlsx"
_NAMES = ("Ada Lovelace", "Grace Hopper", "Zoë Müller", "José Núñez", "Łukasz Nowak", "Mary Jackson", "Ελένη Παπαδάκη")
_FIRMS = ("Blue Kettle Ltd", "Harbour & Sons", "Nordlicht GmbH", "", "Verde S.A.")
_WRONG = ("not known", "grace@", "ada example.org", "none")


def can_import() -> bool:
    """Whether the extra for imports is installed."""
    return "imports" in shipped() and find_spec("xlsxwriter") is not None


def install(app: Windlass, folder: Path) -> Imports:
    """Give the demo's application imports. Rows go to a file of their own, never to the store that was named."""
    from windlass.apps.imports import imports
    from windlass.apps.imports.settings import ImportsSettings

    settings = ImportsSettings(
        folder=folder,
        uploads=folder / "uploads",
        manifest=folder / "import-manifest.json",
        database=f"sqlite:///{folder / 'rows.db'}",
    )
    return imports.install(app, settings)


async def start(imports: Imports, rows: int, owner: str | None = None) -> Handle[Summary]:
    """Make the spreadsheet if it is not there yet, and import it, also for a second time."""
    from windlass.apps.imports.order import Order

    path = imports.settings.folder / FILE
    if not path.exists():
        make(path, rows)
    order = Order(filename=FILE, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    return await imports.start("customers", order, owner=owner, force=True)


def make(path: Path, rows: int) -> None:
    """One row in a hundred or so is wrong."""
    import xlsxwriter  # type: ignore[import-untyped]  # it has no types

    opened: Any = xlsxwriter.Workbook(str(path), {"strings_to_urls": False})
    with opened as book:
        sheet = book.add_worksheet("Customers")
        bold = book.add_format({"bold": True})
        sheet.write_row(0, 0, ("E-Mail", "Full Name", "Telephone", "Company"), bold)
        for n in range(1, rows + 1):
            address = f"customer{n}@example.com" if n % 97 else _WRONG[n % len(_WRONG)]
            name = _NAMES[n % len(_NAMES)] if n % 131 else ""
            sheet.write_row(n, 0, (address, name, 4_930_000_000 + n, _FIRMS[n % len(_FIRMS)]))
        sheet.set_column(0, 3, 26)
