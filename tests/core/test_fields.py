from __future__ import annotations

from datetime import datetime

import pytest

from windlass.core.draft import Options
from windlass.core.fields import FIELDS, Kind, Origin, kind_of
from windlass.core.job import Error, Job, Progress
from windlass.core.rate import Rate

KINDS = {field.name: field.kind for field in FIELDS}
ORIGINS = {field.name: field.origin for field in FIELDS}


def test_the_table_has_every_field_of_a_job_in_its_order() -> None:
    assert tuple(field.name for field in FIELDS) == Job._fields


def test_a_field_is_of_the_kind_of_its_type_whether_it_may_be_empty_or_not() -> None:
    assert (KINDS["run_at"], KINDS["tick"], kind_of("at", datetime | None)) == (Kind.INSTANT,) * 3
    assert (KINDS["queue"], KINDS["trace"], KINDS["payload_json"]) == (Kind.TEXT, Kind.TEXT, Kind.JSON)
    assert (KINDS["status"], KINDS["tags"], KINDS["timeout"]) == (Kind.STATUS, Kind.TAGS, Kind.DURATION)


def test_a_type_that_no_kind_holds_is_named() -> None:
    with pytest.raises(TypeError, match=r"the field weight of a job is of type <class 'float'>: no Kind"):
        kind_of("weight", float)


def test_a_new_job_has_each_field_from_its_draft_its_options_the_store_or_not_at_all() -> None:
    assert ORIGINS["limit"] is Origin.DRAFT  # not the Limit that its options have
    assert ORIGINS["rate_ms"] is Origin.OPTIONS
    assert ORIGINS["run_at"] is Origin.STORE  # by its own clock, whatever the options ask for
    assert ORIGINS["attempts"] is Origin.LATER


def test_options_have_the_number_and_window_of_a_rate_as_jobs_do() -> None:
    options = Options(rate=Rate(3, 60))
    assert (options.rate_n, options.rate_ms) == (3, 60_000)
    assert (Options().rate_n, Options().rate_ms) == (None, None)


def test_an_error_and_a_progress_are_the_same_after_they_were_kept() -> None:
    error, progress = Error(type="ValueError", message="böse"), Progress(done=1.5, of=3, note="übrig")
    for ascii_only in (True, False):
        assert Error.of_text(error.text(ascii_only=ascii_only)) == error
        assert Progress.of_text(progress.text(ascii_only=ascii_only)) == progress
    assert (error.text().isascii(), progress.text().isascii()) == (True, True)
    assert "böse" in error.text(ascii_only=False)
    assert "übrig" in progress.text(ascii_only=False)
