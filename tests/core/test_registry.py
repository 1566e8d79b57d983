from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.core.making import declared
from windlass.core.around import layer_of
from windlass.core.context import Ctx
from windlass.core.errors import HandlerExists, HandlerNotFound
from windlass.core.registry import Registry


def work() -> None: ...


def other_work() -> None: ...


def registry_of(*names: str) -> Registry:
    registry = Registry()
    for name in names:
        registry.add(declared(work, name=name))
    return registry


def test_a_handler_is_found_by_its_name() -> None:
    registry, one = Registry(), declared(work, name="mail.send")
    registry.add(one)
    assert registry.get("mail.send") is one
    assert "mail.send" in registry
    assert "mail" not in registry
    assert list(registry) == [one]
    assert len(registry) == 1


def test_two_handlers_cannot_have_one_name_and_the_first_stays() -> None:
    registry, one = Registry(), declared(work, name="mail.send")
    registry.add(one)
    with pytest.raises(HandlerExists, match=r"'mail.send' is taken by .*\.work, and .*\.other_work claims it too"):
        registry.add(declared(other_work, name="mail.send"))
    assert registry.get("mail.send") is one


def test_a_slip_of_the_pen_is_told_what_it_may_have_meant() -> None:
    with pytest.raises(HandlerNotFound, match=r"the type 'mail.sent': did you mean mail.send"):
        registry_of("mail.send", "import.xlsx").get("mail.sent")


def test_an_unknown_name_is_told_what_there_is() -> None:
    with pytest.raises(HandlerNotFound, match=r"known: import.xlsx, mail.send$"):
        registry_of("mail.send", "import.xlsx").get("zzz")
    with pytest.raises(HandlerNotFound, match=r"known: none$"):
        Registry().get("zzz")


def test_of_many_handlers_only_some_are_named() -> None:
    with pytest.raises(HandlerNotFound, match=r"known: a0, a1, a2 and 7 more$"):
        registry_of(*(f"a{n}" for n in range(10))).get("zzz")


def test_a_name_no_handler_could_have_is_refused_quickly_and_shortly() -> None:
    registry = registry_of(*(f"mail.{'x' * 150}{n}" for n in range(100)))
    with pytest.raises(HandlerNotFound) as caught:
        registry.get("mail." + "x" * 1_000_000)
    assert len(str(caught.value)) < 800
    with pytest.raises(HandlerNotFound, match=r"known: ") as caught:
        registry_of("x" * 200).get("x" * 201)
    assert "did you mean" not in str(caught.value)


def test_where_it_was_said_so_the_second_of_a_name_replaces_the_first() -> None:
    registry, other = Registry(allow_override=True), declared(other_work, name="mail.send")
    registry.add(declared(work, name="mail.send"))
    registry.add(other)
    assert list(registry) == [other]


def layer(_: Ctx) -> Iterator[None]:
    yield


def test_layers_of_the_application_are_outside_those_of_a_handler() -> None:
    registry, first, second, own = Registry(), layer_of(layer), layer_of(layer), layer_of(layer)
    plain = declared(work, name="plain")
    surrounded = replace(declared(work, name="surrounded"), around_run=(own,), around_enqueue=(own,))
    registry.add(plain)
    registry.add(surrounded)
    assert (registry.around_run(plain), registry.around_enqueue("plain")) == ((), ())
    for one in (first, second):
        registry.lay_around_run(one)
        registry.lay_around_enqueue(one)
    assert registry.around_run(plain) == (first, second)
    assert registry.around_run(surrounded) == (first, second, own)
    assert registry.around_enqueue("surrounded") == (first, second, own)
    assert registry.around_enqueue("plain") == registry.around_enqueue("elsewhere") == (first, second)


def test_what_is_built_in_runs_but_is_none_of_the_applications() -> None:
    @layer_of
    def around(_: Ctx) -> Iterator[None]:
        yield

    registry, own = registry_of("mail.send"), declared(work, name="windlass.bulk")
    registry.lay_around_run(around)
    registry.build_in(own)
    assert registry.get("windlass.bulk") is own
    assert [one.name for one in registry] == ["mail.send"]
    assert registry.built_in() == registry.built_in([own.options.queue]) == {"windlass.bulk"}
    assert registry.built_in(["another"]) == frozenset()
    assert registry.around_run(own) == ()
    assert len(registry.around_run(registry.get("mail.send"))) == 1
    with pytest.raises(HandlerExists, match=r"'windlass.bulk' is taken by"):
        registry.add(declared(other_work, name="windlass.bulk"))
