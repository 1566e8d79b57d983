"""A resume is stored once; two tailored ones are made of it, each with its score; then its owner is forgotten.

Needs windlass[resumes]. Over HTTP and in the dashboard it is the same, with `install(app)` alone.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from windlass import Windlass
from windlass.apps.resumes.generating import generate
from windlass.apps.resumes.resumes import Seen, Sent, install
from windlass.apps.resumes.settings import ResumesSettings

RESUME = b"""Ada Example
ada@example.org | +44 20 7946 0958 | London, United Kingdom

Experience
Senior Engineer, Example Ltd, London
January 2019 - March 2024
- Built a ledger in Python and PostgreSQL that serves two million accounts.
Engineer, Sample GmbH, Berlin
June 2015 - December 2018
- Ran distributed systems on Kubernetes.

Skills
Kubernetes, Python, PostgreSQL
"""
JOBS = {
    "Northwind": "We need Python and PostgreSQL. Nice to have: Rust.",
    "Contoso": "You must know Kubernetes and distributed systems.",
}


async def tailor(seen: Seen, company: str) -> None:
    made = await generate(seen.record, JOBS[company], company, "markdown")
    missing = ", ".join(made.score.missing) or "nothing"
    match = "a good" if made.score.total >= 60 else "a poor"
    print(f"{made.file_name}: {match} match, missing {missing}")


async def main(folder: Path) -> None:
    app = Windlass(f"sqlite:///{folder / 'jobs.db'}")
    resumes = install(app, ResumesSettings(files=str(folder / "files")))
    async with app:
        [sent] = await resumes.submit("ann", Sent(name="ada.txt", media_type="text/plain", data=RESUME))
        print("sent:", sent.standing)
        await app.worker(drain=True).run()
        seen = await resumes.look(sent.record.id, "ann")
        assert seen is not None
        print("processed:", seen.standing, "by", seen.record.business_metadata["structuring"]["by"])
        for company in JOBS:
            await tailor(seen, company)
        told = await (await resumes.forgetting()).user("ann", actor="an example")
        print(f"forgotten: {told.records} record, {told.files} file, {told.jobs} job")
    app.close()


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
