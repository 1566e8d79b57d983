# Handlers in a module whose annotations are evaluated at once: the others have `from __future__ import annotations`.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# mypy: disable-error-code=no-untyped-def
# ruff: noqa: ANN
from windlass.core.context import Ctx


def annotated(context: Ctx, order_id: int) -> str:
    return f"{context.id}:{order_id}"


def by_name(ctx, order_id):
    return ctx, order_id


def not_first(order_id, ctx):
    return ctx, order_id


def by_keyword(*, ctx):
    return ctx


def without(order_id, copy_to=None):
    return order_id, copy_to
