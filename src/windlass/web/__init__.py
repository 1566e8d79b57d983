"""HTTP: every job a resource, closed by default. Needs the extra `web`; see `app.asgi()` and `windlass serve`.

The names below are public: what routes and pages of an application's own are made of (`app.add_routes`,
`app.add_pages`).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.web.asking import Admin, AnyCaller, App, Controller, Enqueuer, Operator, Overseer, Reader
    from windlass.web.callers import Caller
    from windlass.web.dashboard.room import Needs, Page, Rail, Room
    from windlass.web.dashboard.visit import Visit
    from windlass.web.extending import Routes, Upload
    from windlass.web.given import Asked
    from windlass.web.problems import FORBIDDEN, INVALID, NOT_FOUND, TOO_LARGE, UNREADABLE, WRONG_TYPE, Kind, Refused
    from windlass.web.routing import Repeatable, Route, Uploading
    from windlass.web.shapes import Instant, JobShape, Shape, job_shape
else:
    _FROM = {
        "Admin": "asking",
        "AnyCaller": "asking",
        "App": "asking",
        "Asked": "given",
        "Caller": "callers",
        "Controller": "asking",
        "Enqueuer": "asking",
        "FORBIDDEN": "problems",
        "INVALID": "problems",
        "Instant": "shapes",
        "JobShape": "shapes",
        "Kind": "problems",
        "NOT_FOUND": "problems",
        "Needs": "dashboard.room",
        "Operator": "asking",
        "Overseer": "asking",
        "Page": "dashboard.room",
        "Rail": "dashboard.room",
        "Reader": "asking",
        "Refused": "problems",
        "Repeatable": "routing",
        "Room": "dashboard.room",
        "Route": "routing",
        "Routes": "extending",
        "Shape": "shapes",
        "TOO_LARGE": "problems",
        "UNREADABLE": "problems",
        "Upload": "extending",
        "Uploading": "routing",
        "Visit": "dashboard.visit",
        "WRONG_TYPE": "problems",
        "job_shape": "shapes",
    }

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _FROM:
            raise AttributeError(f"module 'windlass.web' has no attribute {name!r}")
        return getattr(import_module(f"windlass.web.{_FROM[name]}"), name)


__all__ = [
    "FORBIDDEN",
    "INVALID",
    "NOT_FOUND",
    "TOO_LARGE",
    "UNREADABLE",
    "WRONG_TYPE",
    "Admin",
    "AnyCaller",
    "App",
    "Asked",
    "Caller",
    "Controller",
    "Enqueuer",
    "Instant",
    "JobShape",
    "Kind",
    "Needs",
    "Operator",
    "Overseer",
    "Page",
    "Rail",
    "Reader",
    "Refused",
    "Repeatable",
    "Room",
    "Route",
    "Routes",
    "Shape",
    "Upload",
    "Uploading",
    "Visit",
    "job_shape",
]
