"""The types that ship: customers, accounts payable, budget forecasts."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from windlass.apps.imports.handler import ImportHandler, ImportRow

_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]{2,63}"
)


def _address(text: str) -> str:
    # A pattern, and not a parser of addresses: that takes eight times as long as all the rest of a row.
    if len(text) > 254 or not _ADDRESS.fullmatch(text) or ".." in text.partition("@")[0]:
        raise ValueError("not a valid address")
    return text.lower()


Email = Annotated[str, AfterValidator(_address)]
Text = Annotated[str, Field(min_length=1, max_length=500)]
Money = Annotated[Decimal, Field(max_digits=18, decimal_places=4)]


class CustomerRow(ImportRow):
    """One customer."""

    email: Email
    name: Text
    phone: Annotated[str, Field(max_length=50)] | None = None
    company: Text | None = None


class Customers(ImportHandler):
    """Customers, told apart by their address."""

    import_type = "customers"
    row = CustomerRow
    key = ("email",)
    aliases: ClassVar = {
        "email": ("e-mail", "mail", "email address", "e-mail address"),
        "name": ("full name", "customer", "customer name", "contact"),
        "phone": ("telephone", "phone number", "tel", "mobile"),
        "company": ("organisation", "organization", "firm", "company name"),
    }


class PayableRow(ImportRow):
    """One invoice to be paid."""

    invoice_number: Text
    vendor: Text
    amount: Money
    due_date: dt.date
    status: Annotated[str, Field(max_length=50)] | None = None


class AccountsPayable(ImportHandler):
    """Invoices to be paid, told apart by their number."""

    import_type = "ap"
    table = "accounts_payable"
    row = PayableRow
    key = ("invoice_number",)
    aliases: ClassVar = {
        "invoice_number": ("invoice", "invoice no", "invoice #", "invoice id", "number"),
        "vendor": ("supplier", "vendor name", "supplier name"),
        "amount": ("total", "amount due", "invoice amount"),
        "due_date": ("due", "payable by", "due on"),
    }


class BudgetRow(ImportRow):
    """What one department may spend on one thing in one year."""

    year: Annotated[int, Field(ge=1900, le=2200)]
    category: Text
    department: Text
    amount: Money


class BudgetForecast(ImportHandler):
    """Budgets, told apart by year, category and department."""

    import_type = "budgetForecast"
    row = BudgetRow
    key = ("year", "category", "department")
    aliases: ClassVar = {
        "year": ("fiscal year", "fy"),
        "department": ("dept", "cost centre", "cost center"),
        "amount": ("budget", "forecast"),
    }


SHIPPED = (Customers, AccountsPayable, BudgetForecast)
