"""StatsD: figures over UDP, gathered for a second and sent in few datagrams by a thread of its own.

Nothing here blocks or raises where figures come from: a host that is gone or a name that is slow to resolve costs
datagrams, and nothing else.
"""

from __future__ import annotations

import atexit
import random
import re
import socket
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import parse_qs, urlsplit

from windlass.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

LARGEST = 1_432
"""bytes of a datagram: what goes through Ethernet and most tunnels in one piece"""
INTERVAL = 1.0
"""seconds between two sendings"""
MOST_TIMINGS = 100
"""of one series in an interval; of more a sample is sent, with its rate"""
MOST_SERIES = 5_000
"""in an interval: what is beyond is left out"""
_UNFIT = re.compile(r"[^A-Za-z0-9_.\-]")
_UNFIT_VALUE = re.compile(r"[^A-Za-z0-9_.\-/]")
_EXPECTED = "expected udp://host:port, with ?prefix=… and &tags=dogstatsd or none where wanted"
Tags: TypeAlias = Literal["dogstatsd", "none"]
_Series: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


class StatsD:
    """A reporter of metrics that sends them to a StatsD server: `app.report_metrics(StatsD("localhost"))`.

    With `tags="dogstatsd"` labels go along as tags; with "none", as plain StatsD has it, as parts of the name. `rate`
    is the share of timings that is sent.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8125,
        *,
        prefix: str = "windlass",
        tags: Tags = "dogstatsd",
        rate: float = 1.0,
    ) -> None:
        if tags not in ("dogstatsd", "none") or not 0 < rate <= 1 or not 0 < port < 65536:
            raise SettingsError(f"StatsD at port {port} with tags {tags!r} and rate {rate}: {_EXPECTED}, rate 0 to 1")
        self._address, self._tags, self._rate = (host, port), tags, rate
        self._prefix = f"{_UNFIT.sub('_', prefix)}." if prefix else ""
        self._lock = threading.Lock()
        self._counts: defaultdict[_Series, float] = defaultdict(float)
        self._gauges: dict[_Series, float] = {}
        self._timings: dict[_Series, tuple[int, list[float]]] = {}
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._socket: socket.socket | None = None

    @classmethod
    def of(cls, url: str) -> Self:
        """From an address such as `udp://localhost:8125?prefix=shop&tags=dogstatsd&rate=0.5`."""
        try:
            parts = urlsplit(url)
            found = parse_qs(parts.query, strict_parsing=True) if parts.query else {}
            asked = {name: values[-1] for name, values in found.items()}
            if parts.scheme != "udp" or not parts.hostname or asked.keys() - {"prefix", "tags", "rate"}:
                raise ValueError
            tags: Tags = "none" if asked.get("tags") == "none" else "dogstatsd"
            if asked.get("tags", tags) != tags:
                raise ValueError
            prefix, rate = asked.get("prefix", "windlass"), float(asked.get("rate", "1"))
            return cls(parts.hostname, parts.port or 8125, prefix=prefix, tags=tags, rate=rate)
        except ValueError:
            raise SettingsError(f"the address of StatsD is {url[:200]!r}: {_EXPECTED}") from None

    def increment(self, name: str, value: float, tags: Mapping[str, str]) -> None:
        """So many more; they add up until they are sent."""
        series = (name, tuple(tags.items()))
        with self._lock:
            if series in self._counts or len(self._counts) < MOST_SERIES:
                self._counts[series] += value
            if self._thread is None:
                self._start()

    def gauge(self, name: str, value: float, tags: Mapping[str, str]) -> None:
        """How much there is now; the newest one is sent."""
        series = (name, tuple(tags.items()))
        with self._lock:
            if series in self._gauges or len(self._gauges) < MOST_SERIES:
                self._gauges[series] = value
            if self._thread is None:
                self._start()

    def timing(self, name: str, seconds: float, tags: Mapping[str, str]) -> None:
        """How long it took; of very many a sample is sent."""
        self.timings(name, (seconds,), tags)

    def timings(self, name: str, seconds: Sequence[float], tags: Mapping[str, str]) -> None:
        """How long each of these took."""
        series = (name, tuple(tags.items()))
        with self._lock:
            n, kept = self._timings.get(series, (0, []))
            if not n and len(self._timings) >= MOST_SERIES:
                return
            room = MOST_TIMINGS - len(kept)
            kept += seconds[:room]
            for before, one in enumerate(seconds[room:], n + room):
                at = int(random.random() * (before + 1))
                if at < MOST_TIMINGS:
                    kept[at] = one  # each of them is kept with the same chance
            self._timings[series] = (n + len(seconds), kept)
            if self._thread is None:
                self._start()

    def flush(self) -> None:
        """Send what there is; never raises. It may have to resolve a name, so it is not for an event loop."""
        with self._lock:
            counts, gauges, timings = self._counts, self._gauges, self._timings
            self._counts, self._gauges, self._timings = defaultdict(float), {}, {}
        lines = [self._line(series, f"{_number(value)}|c") for series, value in counts.items()]
        for series, value in gauges.items():
            if value < 0:  # a sign makes it a change of what was there: from nothing, then
                lines.append(self._line(series, "0|g"))
            lines.append(self._line(series, f"{_number(value)}|g"))
        for series, (n, kept) in timings.items():
            some = kept if self._rate == 1 else [one for one in kept if random.random() < self._rate]
            rate = len(kept) / n * self._rate
            told = "" if rate == 1 else f"|@{rate:.6g}"
            lines += [self._line(series, f"{_number(one * 1000)}|ms{told}") for one in some]
        self._send(lines)

    def close(self) -> None:
        """Send what there is, and end."""
        self._closing.set()
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            atexit.unregister(self.close)
            thread.join(INTERVAL)

    def _start(self) -> None:
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._closing,), name="windlass-statsd", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def _run(self, closing: threading.Event) -> None:
        while not closing.wait(INTERVAL):
            self.flush()
        self.flush()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _line(self, series: _Series, value: str) -> bytes:
        name, tags = series
        if self._tags == "dogstatsd":
            told = ",".join(f"{_UNFIT.sub('_', key)}:{_UNFIT_VALUE.sub('_', tag)}" for key, tag in tags)
            return f"{self._prefix}{_UNFIT.sub('_', name)}:{value}{told and f'|#{told}'}".encode()
        # A dot would begin another level of the name.
        parts = (name, *(tag.replace(".", "_") for _, tag in tags))
        return f"{self._prefix}{'.'.join(_UNFIT.sub('_', part) for part in parts)}:{value}".encode()

    def _send(self, lines: list[bytes]) -> None:
        datagram = b""
        for line in lines:
            if datagram and len(datagram) + 1 + len(line) > LARGEST:
                self._send_one(datagram)
                datagram = b""
            if len(line) <= LARGEST:
                datagram += b"\n" + line if datagram else line
        if datagram:
            self._send_one(datagram)

    def _send_one(self, datagram: bytes) -> None:
        try:
            if self._socket is None:
                family, kind, protocol, _, address = socket.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)[0]
                made = socket.socket(family, kind, protocol)
                made.setblocking(False)
                made.connect(address)
                self._socket = made
            self._socket.send(datagram)
        except BlockingIOError:
            return  # the buffer is full: this one is lost, as any may be
        except OSError:
            # Refused or unreachable; or the name has moved: it is looked up anew for the next one.
            if self._socket is not None:
                self._socket.close()
                self._socket = None


def _number(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")
