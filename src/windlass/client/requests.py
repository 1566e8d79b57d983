"""`app.requests`: what was asked under an idempotency key is carried out once, and answered alike ever after."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from windlass.core.draft import ids_after
from windlass.core.errors import SettingsError
from windlass.core.keys import shown
from windlass.stores.contract import Answered, Begun, NewRequest, OtherRequest, UnderWay
from windlass.stores.contract.requests import HELD_FOR, KEPT_FOR, LARGEST_ANSWER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from windlass.client.client import Client

LONGEST_KEY = 255
Standing: TypeAlias = "Attempt | Answered | UnderWay | OtherRequest"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that is ours to carry out. End it by one of `finish`, `release` and `forget`.

    A process that dies before that is waited for a while; then the next caller that asks the same carries it out.
    """

    first_id: str
    _client: Client = field(repr=False)
    _id: str = field(repr=False)
    _mark: str = field(repr=False)

    def ids(self, n: int) -> list[str]:
        """Ids for the jobs that come of it, the same at every attempt: inserted twice they are one job each."""
        return ids_after(self.first_id, n)

    async def finish(self, answer: str) -> bool:
        """Keep the answer for the same request made again; False where another attempt has taken over meanwhile."""
        if len(answer) > LARGEST_ANSWER:
            raise SettingsError(f"the answer has {len(answer):,} characters: at most {LARGEST_ANSWER:,} are kept")
        return await (await self._client.ready()).requests.finish(self._id, self._mark, answer)

    async def release(self) -> bool:
        """It failed here: the next attempt carries it out at once, with the same ids."""
        return await (await self._client.ready()).requests.release(self._id, self._mark)

    async def forget(self) -> bool:
        """Nothing was done: the key may be used again, for something else too."""
        return await (await self._client.ready()).requests.forget(self._id, self._mark)


class RequestsRoom:
    """Requests under an idempotency key, kept in the store: they hold over processes and restarts."""

    def __init__(self, client: Client, keep: timedelta = KEPT_FOR, hold: timedelta = HELD_FOR) -> None:
        self._client, self._keep, self._hold = client, keep, hold

    async def begin(self, key: str, asked: bytes, *, by: Sequence[str]) -> Standing:
        """Begin what is asked, unless it was answered, is under way, or the key stands for something else.

        `by` names the caller: keys of others are other keys. Neither key nor request is kept, but hashes of them.
        """
        check_request_key(key)
        secret = key.encode()
        new = NewRequest(
            id=hashlib.sha256("\0".join([*by, key]).encode(errors="surrogatepass")).hexdigest(),
            fingerprint=hmac.new(secret, asked, hashlib.sha256).hexdigest(),
            first_id=self._client.ids(),
            mark=secrets.token_hex(8),
            keep=self._keep,
            hold=self._hold,
        )
        standing = await (await self._client.ready()).requests.begin(new)
        if isinstance(standing, Begun):
            return Attempt(standing.first_id, self._client, new.id, new.mark)
        return standing


def check_request_key(key: str) -> str:
    """A key as clients send it: 1 to 255 visible characters of ASCII."""
    if 0 < len(key) <= LONGEST_KEY and all("!" <= one <= "~" for one in key):
        return key
    raise SettingsError(
        f"the idempotency key is {shown(key)}: expected 1 to {LONGEST_KEY} visible ASCII characters, such as a UUID"
    )
