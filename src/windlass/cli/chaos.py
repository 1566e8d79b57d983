"""`chaos`: the proof that nothing is lost, run on your own store in a namespace of its own."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windlass import settings
from windlass.app import Windlass
from windlass.chaos.absence import NotHere
from windlass.chaos.faults import FAULTS, Finding, Plan, run
from windlass.chaos.place import Place
from windlass.chaos.report import spread
from windlass.cli.desk import globals_of, run_async
from windlass.cli.output import FAILURE, USAGE, Stop

if TYPE_CHECKING:
    from windlass.cli.output import Bar, Screen

PREFIX = "chaos_"
_JOBS = 200
_SECONDS = 10.0


def chaos(
    ctx: typer.Context,
    faults: Annotated[str, typer.Option(metavar="NAMES", help="Which faults, with commas between.")] = ",".join(FAULTS),
    seed: Annotated[int | None, typer.Option(help="Repeat the choices of an earlier run.", min=0)] = None,
    jobs: Annotated[int, typer.Option(help="How many jobs per fault.", min=1, max=1_000_000)] = _JOBS,
    workers: Annotated[int, typer.Option(help="How many worker processes.", min=2, max=64)] = 3,
    seconds: Annotated[float, typer.Option(help="For how long each fault is repeated.", min=0, max=86_400)] = _SECONDS,
    keep: Annotated[bool, typer.Option("--keep", help="Leave jobs, history and logs for a look.")] = False,
) -> None:
    """Kill, freeze, stop, poison and block workers on your own store, keep it from them, and check that no job is lost.

    Works in a namespace of its own, which is removed afterwards: no other data is touched. Uses --store,
    WINDLASS_STORE or windlass.toml; without any of them an SQLite file in a temporary directory. Ends with 1 if
    anything that must be zero is not.

    Example: windlass chaos --store postgresql://localhost/shop --faults kill,freeze --seconds 60
    """
    given = globals_of(ctx)
    chosen = _chosen(faults)
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    outside = settings.load().url
    folder = Path(tempfile.mkdtemp(prefix="windlass-chaos-"))
    own = f"sqlite:///{folder / 'jobs.db'}"
    url = given.store or (own if outside == settings.DEFAULT_URL else outside)
    show = _Show(given.screen, seed)
    plan = Plan(jobs=jobs, workers=workers, seconds=seconds, job=0.1, within=60 + seconds)
    try:
        findings = run_async(_run(url, folder, chosen, plan, seed, given.screen, keep=keep))
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    if not findings:
        raise Stop(FAILURE, "nothing was tried, so nothing was proved: choose other --faults")
    show.all(Windlass(url).address, findings)
    if keep:
        given.screen.say(f"kept: namespaces {PREFIX}… of the store, and {folder}")
    bad = [finding for finding in findings if not finding.good]
    if bad and all(finding.open for finding in bad):
        raise Stop(FAILURE, "nothing is broken, but not all was proved: see above, and give more --jobs or --seconds")
    if bad:
        raise Stop(FAILURE, "something that must be zero is not: see above, and repeat with --keep")


def _chosen(faults: str) -> list[str]:
    names = [name.strip() for name in faults.split(",") if name.strip()]
    unknown = [name for name in names if name not in FAULTS]
    if unknown or not names:
        raise Stop(USAGE, f"--faults is {faults!r}: expected some of {', '.join(FAULTS)}")
    return names


async def _run(
    url: str, folder: Path, chosen: list[str], plan: Plan, seed: int, screen: Screen, *, keep: bool
) -> list[Finding]:
    mark = secrets.token_hex(3)
    findings: list[Finding] = []
    with screen.bar("chaos") as bar:
        for number, name in enumerate(chosen):
            place = Place(url=url, namespace=f"{PREFIX}{mark}_{name}", folder=folder / name)
            told = _told(plan, bar, number, len(chosen), name)
            try:
                FAULTS[name].possible(place)
            except NotHere as why:
                _skip(screen, name, str(why))
                continue
            finding = await _tried(name, place, told, seed, keep=keep)
            if finding.open:
                # As on a busy machine: where the fault came when there was nothing to harm, it comes once more.
                again = replace(place, namespace=f"{place.namespace}_again", folder=folder / f"{name}_again")
                finding = await _tried(name, again, told, seed + 1, keep=keep)
            findings.append(finding)
    return findings


async def _tried(name: str, place: Place, plan: Plan, seed: int, *, keep: bool) -> Finding:
    try:
        return await run(name, place, plan, seed)
    finally:
        if not keep:
            await asyncio.shield(_remove(place))


def _skip(screen: Screen, name: str, why: str) -> None:
    if screen.as_json:
        screen.fact({"fault": name, "good": None, "skipped": why})
    screen.say(f"{name} was not tried: {why}")


def _told(plan: Plan, bar: Bar, number: int, of: int, name: str) -> Plan:
    def tell(share: float) -> None:
        bar(number + share, of, FAULTS[name].summary)

    tell(0)
    return replace(plan, tell=tell)


async def _remove(place: Place) -> None:
    app = Windlass(place.url, namespace=place.namespace)
    async with app:
        await app.store.schema.remove()


class _Show:
    """The figures, for people or for programs."""

    def __init__(self, screen: Screen, seed: int) -> None:
        self._screen, self._seed = screen, seed

    def all(self, address: str, findings: list[Finding]) -> None:
        if self._screen.as_json:
            for one in findings:
                told = {"missing": list(one.missing), **one.report.figures()}
                self._screen.fact({"fault": one.fault, "store": address, "seed": self._seed, "good": one.good, **told})
            return
        self._screen.line(f"{address}  seed {self._seed}")
        heads = ("fault", "", *(head for head, _ in _COLUMNS))
        self._screen.table(heads, [self._row(one) for one in findings])
        self._screen.say()
        self._screen.say(
            "Must be 0: lost to violated. n counts acknowledged jobs: none lost in n means that, with 95 %"
        )
        self._screen.say("certainty, at most 3/n are. Runs again and effects twice are what at least once allows.")
        for one in findings:
            for line in one.told().splitlines() if not one.good else ():
                self._screen.line(f"{one.fault}: {line}", "bold red")

    def _row(self, finding: Finding) -> list[str]:
        figures = finding.report.figures()
        return [finding.fault, "PASS" if finding.good else "FAIL", *(_cell(figures, key) for _, key in _COLUMNS)]


_COLUMNS = (
    ("n", "acknowledged"),
    ("faults", "faults"),
    ("lost", "lost"),
    ("unexpected", "unexpected"),
    ("unfinished", "unfinished"),
    ("wrong end", "misjudged"),
    ("dup in lease", "dup_in_lease"),
    ("begun late", "begun_late"),
    ("late accepted", "late_accepted"),
    ("spent", "spent"),
    ("failed unbegun", "failed_unbegun"),
    ("crashes of the living", "crashes_of_the_living"),
    ("violated", "violations"),
    ("late refused", "late_refused"),
    ("run again", "dup_total"),
    ("effects twice", "effects_twice"),
    ("recovery p50/p95/max", "recovery"),
    ("3/n", "bound"),
)


def _cell(figures: dict[str, Any], key: str) -> str:
    if key == "recovery":
        found = [figures[f"recovery_{name}"] for name in spread(())]
        return "–" if found[0] is None else " / ".join(f"{one:.2f}" for one in found) + " s"
    return f"{figures[key]:.2g}" if key == "bound" else str(figures[key])
