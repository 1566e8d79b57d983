import asyncio, itertools
from tests.support.drafts import draft, want
from tests.contract.steps import *
from windlass.core.limit import Limit
async def test_r(store):
    one, two = Limit("one",1), Limit("two",2)
    ids = []
    for l,q in ((one,"a"),(one,"b"),(two,"b"),(two,"a"),(one,"a")):
        d = draft(limit=l, queue=q); ids.append(d.id); await put(store, d)
    got = await store.jobs.claim(want(3, queues={"a":2,"b":1}))
    print([ids.index(j.id) for j in got], await statuses(store, ids))
    assert 0
