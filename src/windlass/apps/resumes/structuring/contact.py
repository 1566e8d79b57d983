"""Who a resume is of: name, title, addresses, links."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from windlass.apps.resumes.resume import EMAIL, Basics, Location, Profile
from windlass.apps.resumes.structuring.links import LINK, MAIL, links_in
from windlass.apps.resumes.structuring.rows import Part, Row
from windlass.apps.resumes.vocabulary.headings import plain, section_of
from windlass.apps.resumes.vocabulary.places import is_place, locate
from windlass.apps.resumes.vocabulary.titles import company_worth, title_worth

_PHONE = re.compile(r"(?<![\w./-])\(?(?:\+|00)?\(?\d[\d\s().\-/–]{5,22}\d(?![\w@])(?:\s?(?:x|ext\.?)\s?\d{1,5})?")
_LABELLED = re.compile(
    r"(?:phone|tel|telefon|téléphone|telephone|mobile?|mobil|handy|cell|móvil|movil|teléfono|telefono|portable|ph|m|t|p|fon|tél|whatsapp)\b\.?(?:nummer|number)?\s*(?:\([^)]*\))?\s*[:.]?\s*$",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"^(?:name|full name|vor- und nachname|nom(?: et prénom)?|nombre(?: y apellidos)?|naam|vor- & nachname)\s*[:\t]\s*(.+)$",
    re.IGNORECASE,
)
_FIRST_LAST = (
    re.compile(r"^(?:first name|vorname|prénom|nombre)\s*[:\t]\s*(.+)$", re.IGNORECASE),
    re.compile(
        r"^(?:last name|surname|nachname|familienname|nom(?: de famille)?|apellidos?)\s*[:\t]\s*(.+)$", re.IGNORECASE
    ),
)
_NO_NAME = re.compile(
    r"\b(?:curriculum|vitae|resume|résumé|lebenslauf|cv|bewerbung|page|seite|hoja de vida|currículum|profile|profil|confidential|address|email|phone|"
    r"adresse|telefon|contact|kontakt|street|straße|strasse|road|avenue|rue|calle|university|summary|driver|born|geboren|nationality)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"^[^\W\d_][^\W\d_]*(?:[.'’\-][^\W\d_]*)*\.?,?$")
_DEGREES = re.compile(
    r",?\s*(?:\b(?:MBA|PhD|Ph\.D\.|M\.?D\.?|CPA|PMP|RN|BSN|MSN|CFA|M\.?Sc\.?|B\.?Sc\.?|M\.?A\.|B\.?A\.|P\.?E\.?|Esq\.?|SHRM-CP|CISSP|LCSW|DDS|PharmD|CSM)(?=[,\s]|$),?\s*)+$"
)
_TITLED = re.compile(r"^(?:(?:Dr|Prof|Mr|Mrs|Ms|Herr|Frau|Dipl\.-\w+|Ing|M\.|Mme|Sr|Sra)\.?\s+)+(?=\w+\s+\w+)")
_NEAR = 60.0
"""points below a name in which its title stands, whatever the block"""
_SMALL = {
    "von",
    "van",
    "de",
    "der",
    "den",
    "la",
    "le",
    "del",
    "di",
    "da",
    "dos",
    "du",
    "y",
    "zu",
    "bin",
    "al",
    "el",
    "ten",
    "ter",
    "e",
}


def basics_of(parts: list[Part], links: tuple[str, ...]) -> Basics:
    """Contact and the summary. Nothing is told that is not there."""
    heads = [part for part in parts if part.section in {None, "contact"}]
    top = [row for part in heads for row in part.rows]
    everywhere = [row for part in parts for row in part.rows]
    email = _email(top) or _email(everywhere) or _behind(links, "mailto:")
    name, named = _name(top, everywhere, email)
    phone = (
        _phone(top)
        or _phone(everywhere[-4:])
        or _phone([row for part in parts if part.section in {"other", "summary"} for row in part.rows])
    )
    found = links_in([*top, *everywhere[-6:]], email, links)
    place = _place(top, name)
    label = _label(top, named, name)
    summary = _summary(parts, top, named)
    return Basics(
        name=name,
        label=label,
        email=email if email and re.match(EMAIL, email) else None,
        phone=phone,
        url=next((url for network, _, url in found if network is None), None),
        summary=summary,
        location=Location(**place) if place else None,
        profiles=[
            Profile(network=network, username=user, url=url) for network, user, url in found if network is not None
        ],
    )


def _name(top: list[Row], everywhere: list[Row], email: str | None) -> tuple[str | None, Row | None]:
    for row in everywhere[:60]:
        told = _NAMED.match(row.text)
        if told is not None and not _FIRST_LAST[1].match(row.text) and _like_name(told[1].split("\t")[0]):
            return _cased(told[1].split("\t")[0]), row
    first, last = (
        next((m[1] for row in everywhere[:40] if (m := pattern.match(row.text))), None) for pattern in _FIRST_LAST
    )
    if first and last:
        return _cased(f"{first} {last}"), None
    front = [row for row in everywhere if row.page == 0]
    candidates = [row for row in top if row.page == 0][:40] + [row for row in front if row not in top][:4]
    candidates += [
        row for row in front if row not in candidates and _like_name(row.text) and _of_email(row.text, email)
    ]
    if not candidates:
        return None, None
    largest = max((row.size for row in candidates), default=0.0)
    best: tuple[float, str, Row] | None = None
    for at, row in enumerate(candidates):
        after = candidates[at + 1] if at + 1 < len(candidates) else None
        for text, penalty in _pieces(row, after):
            own = _like_name(text) and _of_email(text, email)
            if not _like_name(text) or (title_worth(text) >= 0.9 and not own):
                continue
            worth = 3.0 - 0.25 * at - penalty
            if largest and row.size >= largest - 0.3 and largest > 11:
                worth += 4.0
            elif largest and row.size >= 0.8 * largest and row.bold:
                worth += 1.0
            worth -= (
                2.0 * min(1.0, title_worth(text)) + (1.0 if is_place(text) else 0.0) + min(1.0, company_worth(text))
            )
            if len(text.split()) == 1:
                worth -= 4.0
            if own:
                worth += 6.0
            if best is None or worth > best[0]:
                best = worth, text, row
    if best is None or best[0] < -2.5:
        return None, None
    return _cased(best[1]), best[2]


def _of_email(name: str, email: str | None) -> bool:
    """Whether an address is of a person of that name."""
    local = plain((email or "").replace(".", " ").replace("_", " ").replace("-", " ").replace("@", " "))
    words = [plain(word) for word in name.split() if len(word) > 2]
    return (
        len(words) > 1
        and bool(local)
        and all(word in local or _spelled(word) in local for word in words[:1] + words[-1:])
    )


def _spelled(word: str) -> str:
    """As addresses spell German letters; `word` has no accents any more."""
    return word.replace("u", "ue", 1)


def _pieces(row: Row, after: Row | None) -> list[tuple[str, float]]:
    """What of a row may be a name: all of it, its first cell, what stands before a mark; or two rows of large letters."""
    text = row.text.strip()
    found = [(text, 0.0)]
    if (
        after is not None
        and abs(after.size - row.size) < 0.6
        and row.size > 13
        and text.count(" ") <= 1
        and after.text.count(" ") <= 1
    ):
        found.append((f"{text} {after.text}", -0.5))
    marks = ("\t", " | ", " – ", " - ", " — ", " • ", " · ", ", ")
    return found + [(text.split(mark)[0], 0.3) for mark in marks if mark in text]


def _like_name(text: str) -> bool:
    said = _bare(text)
    words = said.split()
    if (
        not 1 <= len(words) <= 5
        or "\t" in text
        or len(said) > 45
        or _NO_NAME.search(said)
        or section_of(said) is not None
    ):
        return False
    if not all(_WORD.match(word) for word in words):
        return False
    return all(word[0].isupper() or word.lower() in _SMALL for word in words) or (said.islower() and len(words) == 2)


def _bare(text: str) -> str:
    said = _DEGREES.sub("", text.strip(" ,|•–-"))
    return _TITLED.sub("", said).strip(" ,")


def _cased(text: str) -> str:
    """A name in capitals as it is usually written."""
    said = _bare(text)
    if sum(one.isupper() for one in said) <= len(said.split()) + 2 and not said.isupper() and not said.islower():
        return said
    if not said.isupper() and not said.islower():  # "Anna MÜLLER"
        return " ".join(_word_cased(word) if word.isupper() and len(word) > 2 else word for word in said.split())
    words = [
        word.lower() if word.lower() in _SMALL and at else _word_cased(word) for at, word in enumerate(said.split())
    ]
    return " ".join(words)


def _word_cased(word: str) -> str:
    said = "".join(part if not part.isalpha() else part.capitalize() for part in re.split(r"([-'’.])", word))
    return re.sub(r"^Mc([a-z])", lambda found: f"Mc{found[1].upper()}", said)


def _email(rows: list[Row]) -> str | None:
    for at, row in enumerate(rows):
        found = MAIL.search(row.text)
        if found is not None:
            above = rows[at - 1].text if at and rows[at - 1].block == row.block else ""
            start = re.search(r"(?:^|[\s:])([A-Za-z0-9.]+[-._])$", above)
            broken = found.start() == 0 and start is not None and "@" not in above
            return (start[1] if broken and start else "") + found.group().replace(" ", "")
    for row, after in pairwise(rows):  # broken in a narrow column
        if "@" in row.text or after.text.startswith("@") or row.text.endswith("@"):
            found = MAIL.search(row.text.strip() + after.text.strip())
            if found is not None:
                return found.group()
    return None


def _behind(links: tuple[str, ...], scheme: str) -> str | None:
    return next((link[len(scheme) :].partition("?")[0] for link in links if link.lower().startswith(scheme)), None)


def _phone(rows: list[Row]) -> str | None:
    best: tuple[float, str] | None = None
    for row in rows:
        text = LINK.sub(
            lambda found: " " * len(found.group()), MAIL.sub(lambda found: " " * len(found.group()), row.text)
        )
        for found in _PHONE.finditer(text):
            said = found.group().strip(" .-–/")
            digits = sum(one.isdigit() for one in said)
            if not 7 <= digits <= 15 or _not_phone(said.strip("() .")):
                continue
            worth = 1.0 if said.startswith(("+", "(", "00")) else 0.0
            worth += 1.0 if digits >= 9 else -0.5
            worth += 0.3 if MAIL.search(row.text) else 0.0  # in the line of contacts, a number of a town will do
            worth += (
                2.0
                if _LABELLED.search(text[: found.start()].strip() + ("" if text[: found.start()].strip() else " "))
                else 0.0
            )
            worth -= 1.5 if re.search(r"fax\W*$", text[: found.start()], re.IGNORECASE) else 0.0
            if said.count("(") != said.count(")"):
                said = said.strip("()")
            if (best is None or worth > best[0]) and worth > -0.4:
                best = worth, said
    return best[1] if best is not None else None


def _not_phone(said: str) -> bool:
    if re.fullmatch(r"(?:19|20)\d\d\s?[-–/]\s?(?:19|20)\d\d", said):
        return True
    if re.fullmatch(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}(?:\s?[-–]\s?\d{1,2}[./-]\d{1,2}[./-]\d{2,4})?", said):
        return True
    if re.fullmatch(r"\d{1,2}[./]\d{4}\s?[-–]\s?\d{1,2}[./]\d{4}", said):
        return True
    return re.fullmatch(r"\d{4}-\d{2}(?:-\d{2})?", said) is not None


def _place(top: list[Row], name: str | None) -> dict[str, str] | None:
    said: list[str] = []
    for row in top[:30]:
        text = _PHONE.sub(
            lambda found: "\t" if sum(one.isdigit() for one in found.group()) >= 7 else found.group(),
            LINK.sub("\t", MAIL.sub("\t", row.text)),
        )
        text = re.sub(
            r"^(?:address|adresse|anschrift|wohnort|location|dirección|domicilio|based in|lives in|ort|lieu|ciudad)\s*[:\t]\s*",
            "",
            text,
            flags=re.IGNORECASE,
        )
        if re.match(
            r"^(?:geboren|geb|born|date of birth|geburts|né|née|nacid|fecha|lugar de nac|place of birth|nationali)",
            text,
            re.IGNORECASE,
        ):
            continue
        said += [piece.strip(" ,•·|") for piece in re.split(r"\t|\s[|•·]\s", text)]
    for text in said:
        if text and text != name and len(text) < 100 and title_worth(text) < 0.7 and len(text.split()) < 14:
            found = locate(text)
            if found and found.get("city", "x").split()[0].casefold() not in (name or "").casefold().split():
                return found
    return None


def _label(top: list[Row], named: Row | None, name: str | None) -> str | None:
    """The title under a name."""
    if named is None:
        return None
    rest = [
        piece
        for mark in ("\t", " | ", " – ", " - ", " — ", " • ")
        if mark in named.text
        for piece in named.text.split(mark)[1:]
    ]
    below = [
        row
        for row in top
        if row is not named and row.page == named.page and row.y >= named.y
        if row.block == named.block or row.y - named.y < _NEAR
    ][:5]
    for text in rest + [row.text for row in below]:
        for said in dict.fromkeys((text, re.split(r"\t|\s+[|•·]\s+", text)[0])):
            kept = said.strip(" |•–-,")
            if (
                not kept
                or len(kept) > 90
                or kept in (name or "")
                or MAIL.search(kept)
                or kept.endswith(".")
                or re.search(r"\d{3}", kept)
            ):
                continue
            if title_worth(kept) >= 0.7 and not is_place(kept) and _cased(kept) != name:
                return kept
    return None


def _summary(parts: list[Part], top: list[Row], named: Row | None) -> str | None:
    rows = [row for part in parts if part.section == "summary" for row in part.rows]
    if not rows:
        rows = [
            row
            for row in top
            if row is not named
            and len(row.text) > 60
            and not MAIL.search(row.text)
            and not LINK.search(row.text)
            and "\t" not in row.text
        ]
        first = top.index(rows[0]) if rows else 0
        if rows and len(top) > first + len(rows):
            rows = [
                row
                for row in top[first : first + len(rows) + 1]
                if not MAIL.search(row.text) and not _PHONE.search(row.text)
            ]
    text = joined(row.text for row in rows if not MAIL.search(row.text))
    return text[:20_000] if len(text.split()) > 3 else None


_LONGEST = 15_000
"""characters of one text: what follows is left out"""


def joined(texts: Iterable[str]) -> str:
    """Lines of running text as one; words that were broken at their ends are whole again."""
    said = ""
    for text in texts:
        if len(said) > _LONGEST:
            break
        line = text.replace("\t", " ").strip()
        if (
            re.search(r"[^\W\d_]-$", said)
            and line[:1].islower()
            and plain(line.split()[0]) not in {"and", "und", "et", "y", "or", "oder"}
        ):
            said = said[:-1] + line
        else:
            said = f"{said} {line}".strip()
    return said
