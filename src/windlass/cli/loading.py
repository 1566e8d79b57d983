"""Loading: from `module:app` on the command line to the application it names."""

from __future__ import annotations

import importlib
import os
import sys
import traceback

from windlass.app import Windlass
from windlass.core.errors import SettingsError

DEFAULT_NAME = "app"


def load_app(spec: str) -> Windlass:
    """Import the module, with the current directory on its path, and give the Windlass in it.

    Without `:name` it is `app`, or the only one there. SettingsError says in one line what is missing or raised.
    """
    module_name, colon, name = spec.partition(":")
    if not module_name or (colon and not name):
        raise SettingsError(f"the application is {spec!r}: expected module:app, such as shop.jobs:app")
    here = os.getcwd()  # noqa: PTH109  # sys.path holds text
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _import(module_name)
    found = _attribute(module, name) if name else _only_one(module)
    if isinstance(found, Windlass):
        return found
    if found is None:
        raise SettingsError(
            f"module {module_name!r} has no {name or DEFAULT_NAME!r}: make one with"
            f" {name or DEFAULT_NAME} = Windlass(…), or name another as {module_name}:name"
        )
    raise SettingsError(f"{spec!r} is a {type(found).__name__}: expected an instance of windlass.Windlass")


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise SettingsError(
                f"there is no module {error.name!r} here or on Python's path: start in the directory"
                " that holds it, or install it"
            ) from error
        raise SettingsError(_broken(name, error)) from error
    except Exception as error:
        raise SettingsError(_broken(name, error)) from error
    except SystemExit as error:
        raise SettingsError(f"module {name!r} ended the program while it was imported") from error


def _broken(name: str, error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"module {name!r} cannot be imported: SyntaxError: {error.msg} ({error.filename}, line {error.lineno})"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"module {name!r} cannot be imported: {type(error).__name__}: {error} ({last.filename}, line {last.lineno})"


def _attribute(module: object, path: str) -> object | None:
    found: object | None = module
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _only_one(module: object) -> object | None:
    named: object | None = getattr(module, DEFAULT_NAME, None)
    if named is not None:
        return named
    found = {id(one): one for one in vars(module).values() if isinstance(one, Windlass)}
    return next(iter(found.values())) if len(found) == 1 else None
