"""Which server to talk to when the address is a node of a cluster.

All keys of a namespace have one hash tag, so one node has them all. Any node says which one that is; the others are
remembered for the day when it goes away. Outside of a cluster there is only the address given.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit


class Nodes:
    """The nodes known by now, and the one that is asked."""

    def __init__(self, url: str) -> None:
        self.at = url
        self._given = url
        self._known = [url]
        self.clustered = False

    def moved(self, told: str) -> bool:
        """Use the node that MOVED names (`slot host:port`) from now on; returns whether it is a new one."""
        host, _, port = told.rpartition(" ")[2].rpartition(":")
        before, self.at = self.at, self._url(host, int(port))
        self.clustered = True
        if self.at not in self._known:
            self._known.append(self.at)
        return self.at != before

    def learn(self, slots: list[list[Any]]) -> None:
        """Remember every node that CLUSTER SLOTS names, replicas too."""
        self.clustered = True
        found = {self._url(node[0].decode() if node[0] else "", node[1]) for part in slots for node in part[2:]}
        # The address given stays: a name may lead to other nodes by the time when all of these are gone.
        self._known = [self._given, *sorted(found - {self._given})]

    def turn_from(self, url: str) -> None:
        """Ask the next one: this one does not answer."""
        if self.at == url and len(self._known) > 1:
            place = self._known.index(url) if url in self._known else -1
            self.at = self._known[(place + 1) % len(self._known)]

    def _url(self, host: str, port: int) -> str:
        """The address given, at another host: same user, same options."""
        given, asked = urlsplit(self._given), urlsplit(self.at)
        if host in ("", "?"):  # it knows no name for that node but the one by which we reached it
            host = asked.hostname or ""
        if ":" in host:
            host = f"[{host}]"
        user, at, _ = given.netloc.rpartition("@")
        return given._replace(netloc=f"{user}{at}{host}:{port}").geturl()
