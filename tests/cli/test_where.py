"""Where `enqueue` puts a job when no store is named: it says so, and makes no store that nobody asked for."""

from __future__ import annotations

from tests.cli.support import Shop

UNHEARD = "no worker has told of the type hello: it was enqueued with default options, its payload not checked\n"


def test_without_a_store_it_says_where_the_job_went(shop: Shop) -> None:
    for words, env, doubt in (
        (("--app", "shop:app"), {}, ""),
        ((), {"WINDLASS_APP": "shop:app"}, ""),
        ((), {"WINDLASS_URL": "sqlite:///shop.db"}, UNHEARD),
    ):
        said = shop.process("enqueue", "hello", *words, env=env)
        assert (said.code, len(said.out.split())) == (0, 1)
        assert said.err == f"{doubt}in {shop.url}\n"
    assert shop.process("enqueue", "hello", "--quiet", "--app", "shop:app").err == ""
    assert shop.process("enqueue", "hello", "--store", shop.url).err == UNHEARD
    assert not (shop.home / "windlass.db").exists()


def test_the_default_file_is_used_where_it_is_there(shop: Shop) -> None:
    shop.process("migrate", env={"WINDLASS_URL": "sqlite:///windlass.db"})
    said = shop.process("enqueue", "hello", "--json")
    assert (said.code, said.err) == (0, f"{UNHEARD}in sqlite:///{shop.home / 'windlass.db'}\n")
    assert said.fact["created"] is True


def test_it_makes_no_file_that_nothing_names(shop: Shop) -> None:
    said = shop.process("enqueue", "hello")
    assert (said.code, said.out) == (3, "")
    assert f"no store is named, and there is no {shop.home / 'windlass.db'}" in said.err
    for hint in ("--app MODULE:APP", "--store URL", "WINDLASS_URL", "windlass migrate"):
        assert hint in said.err
    assert not (shop.home / "windlass.db").exists()


def test_a_running_worker_with_another_store_gets_no_file_beside_it(shop: Shop) -> None:
    shop.start("worker", "shop:app")
    shop.says("ready")
    assert shop.process("enqueue", "hello").code == 3
    assert not (shop.home / "windlass.db").exists()


def test_a_new_file_that_is_named_is_made_and_told(shop: Shop) -> None:
    said = shop.process("enqueue", "hello", env={"WINDLASS_URL": "sqlite:///other.db"})
    assert (said.code, said.err) == (0, f"{UNHEARD}in sqlite:///{shop.home / 'other.db'}, which was made for it\n")
    said = shop.process("enqueue", "hello", env={"WINDLASS_URL": "sqlite:///windlass.db"})  # its default, but said
    assert (said.code, said.err) == (0, f"{UNHEARD}in sqlite:///{shop.home / 'windlass.db'}, which was made for it\n")
    assert shop.process("enqueue", "hello", "--store", "sqlite:///third.db").code == 0
    assert (shop.home / "third.db").exists()


def test_a_password_is_not_shown(shop: Shop) -> None:
    said = shop.process("enqueue", "hello", env={"WINDLASS_URL": "redis://me:secret@127.0.0.1:1/0"})
    assert said.code == 3
    assert "secret" not in said.out + said.err
