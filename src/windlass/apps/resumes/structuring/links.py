"""Addresses of mail and of pages in a text, and which network each page is of."""

from __future__ import annotations

import re

from windlass.apps.resumes.structuring.rows import Row

MAIL = re.compile(r"[A-Za-z0-9._%+\-äöüß]+\s?@\s?[A-Za-z0-9äöüß\-]+(?:\.[A-Za-z0-9äöüß\-]+)*\.[A-Za-z]{2,24}")
LINK = re.compile(
    r"(?<![@\w.])(?:https?://)?(?:www\.)?(?:[a-z0-9\-]+\.)+(?:com|org|net|io|dev|me|de|fr|es|uk|eu|it|at|ch|nl|in|ai|app|co|tech|info|ca|us|design|blog|xyz|page|site|be|pt|br|mx)\b(?::\d+)?(?:/[^\s|•·,;()<>]*)?",
    re.IGNORECASE,
)
_NETWORKS = {
    "linkedin.com": "LinkedIn", "github.com": "GitHub", "gitlab.com": "GitLab", "xing.com": "XING", "twitter.com": "Twitter", "x.com": "X",
    "stackoverflow.com": "Stack Overflow", "medium.com": "Medium", "behance.net": "Behance", "dribbble.com": "Dribbble", "kaggle.com": "Kaggle",
    "bitbucket.org": "Bitbucket", "orcid.org": "ORCID", "researchgate.net": "ResearchGate", "facebook.com": "Facebook", "instagram.com": "Instagram",
    "youtube.com": "YouTube", "scholar.google.com": "Google Scholar", "leetcode.com": "LeetCode", "hackerrank.com": "HackerRank", "malt.fr": "Malt",
}  # fmt: skip


def links_in(rows: list[Row], email: str | None, behind: tuple[str, ...]) -> list[tuple[str | None, str | None, str]]:
    """Links as (network, user, address); those of no network last are pages of one's own."""
    found: dict[str, tuple[str | None, str | None, str]] = {}
    mail_host = (email or "@").partition("@")[2].lower()
    said = [one.group().rstrip(".") for row in rows for one in LINK.finditer(MAIL.sub(" ", row.text))]
    hidden = [one for one in behind if one.lower().startswith("http")]
    for text, seen in [(one, True) for one in said] + [(one, False) for one in hidden]:
        address = text if "://" in text else f"https://{text}"
        host, _, path = address.partition("://")[2].partition("/")
        host = host.lower().removeprefix("www.").removeprefix("de.").removeprefix("fr.").removeprefix("es.")
        network = _NETWORKS.get(host)
        if network is None and (
            not seen
            or (host == mail_host and not path)
            or "." not in host
            or re.fullmatch(r"(?:node|vue|next|express|react|nuxt|asp|ember|d3|three|socket)\.(?:js|io|net)", host)
        ):
            continue
        if network is None and not re.search(r"[a-z]{2}", host):
            continue
        user = (
            path.strip("/")
            .removeprefix("in/")
            .removeprefix("profile/")
            .removeprefix("pub/")
            .split("/")[0]
            .split("?")[0]
            or None
        )
        key = network or host + path
        if network is not None and (user is None or (key in found)):
            continue
        if len(address) < 200 and re.fullmatch(r"[a-z][a-z0-9+.-]*:[^\s<>\"{}|\\^`]+", address):
            found.setdefault(key, (network, user, address))
    for row in rows:  # "GitHub: name", "LinkedIn: /in/name"
        for one in re.finditer(
            r"\b(linkedin|github|gitlab|xing|twitter)\s*[:@]\s*/?(?:in/)?@?([\w.\-]{3,40})(?![\w./])",
            row.text,
            re.IGNORECASE,
        ):
            network = _NETWORKS[f"{one[1].lower()}.com"]
            if network not in found and not one[2].lower().startswith(("http", "www", one[1].lower())):
                prefix = "https://www.linkedin.com/in/" if network == "LinkedIn" else f"https://{one[1].lower()}.com/"
                found[network] = (network, one[2], prefix + one[2])
    return list(found.values())
