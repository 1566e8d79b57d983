"""Countries, their regions, and how places are written."""

from __future__ import annotations

import re

from windlass.apps.resumes.vocabulary.headings import plain

_COUNTRIES = """
US usa|u.s.a.|united states|united states of america|us|etats-unis|estados unidos|ee. uu.|eeuu|vereinigte staaten
GB uk|u.k.|united kingdom|england|scotland|wales|great britain|northern ireland|grossbritannien|vereinigtes konigreich|royaume-uni|reino unido|inglaterra|angleterre
DE germany|deutschland|allemagne|alemania|germania|alemanha|duitsland
AT austria|osterreich|autriche|oostenrijk
CH switzerland|schweiz|suisse|suiza|svizzera|zwitserland
FR france|frankreich|francia|frankrijk|franca
ES spain|spanien|espagne|espana|spagna|spanje|espanha
IT italy|italien|italie|italia
PT portugal
NL netherlands|the netherlands|niederlande|pays-bas|paises bajos|nederland|holland
BE belgium|belgien|belgique|belgica|belgie
LU luxembourg|luxemburg
IE ireland|irland|irlande|irlanda
DK denmark|danemark|dinamarca|danmark
SE sweden|schweden|suede|suecia|sverige
NO norway|norwegen|norvege|noruega|norge
FI finland|finnland|finlande|finlandia
PL poland|polen|pologne|polonia|polska
CZ czech republic|czechia|tschechien|tchequie
SK slovakia|slowakei
HU hungary|ungarn|hongrie
RO romania|rumanien|roumanie
BG bulgaria|bulgarien
GR greece|griechenland|grece|grecia
HR croatia|kroatien
RS serbia|serbien
SI slovenia|slowenien
UA ukraine
RU russia|russland|russie
TR turkey|turkei|turquie|turkiye|turquia
EE estonia
LV latvia
LT lithuania
IS iceland
CA canada|kanada
MX mexico|mexiko|mexique
BR brazil|brasil|brasilien|bresil
AR argentina|argentinien|argentine
CL chile|chili
CO colombia|kolumbien|colombie
PE peru|perou
UY uruguay
VE venezuela
EC ecuador
CR costa rica
IN india|indien|inde
PK pakistan
BD bangladesh
LK sri lanka
NP nepal
CN china|chine|p.r. china
HK hong kong
TW taiwan
JP japan|japon
KR south korea|korea|sudkorea
SG singapore|singapur|singapour
MY malaysia
TH thailand
VN vietnam
ID indonesia
PH philippines
AU australia|australien|australie
NZ new zealand|neuseeland
ZA south africa|sudafrika
NG nigeria
KE kenya|kenia
GH ghana
EG egypt|agypten|egypte
MA morocco|marokko|maroc|marruecos
TN tunisia|tunisie|tunesien
DZ algeria|algerie
SN senegal
IL israel
AE uae|united arab emirates|vae
SA saudi arabia
QA qatar
LB lebanon|liban
JO jordan
IR iran
"""
COUNTRIES: dict[str, str] = {name: line[:2] for line in _COUNTRIES.strip().splitlines() for name in line[3:].split("|")}
_STATES_SAID = """
AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI
SC SD TN TX UT VT VA WA WV WI WY DC ON QC BC AB MB SK NS NB NL PE NSW VIC QLD ACT
"""
_STATES = frozenset(_STATES_SAID.split())
_STATE_NAMES = frozenset(
    """alabama|alaska|arizona|arkansas|california|colorado|connecticut|delaware|florida|georgia|hawaii|idaho|illinois|indiana|iowa|
    kansas|kentucky|louisiana|maine|maryland|massachusetts|michigan|minnesota|mississippi|missouri|montana|nebraska|nevada|
    new hampshire|new jersey|new mexico|new york|north carolina|north dakota|ohio|oklahoma|oregon|pennsylvania|rhode island|
    south carolina|south dakota|tennessee|texas|utah|vermont|virginia|washington|west virginia|wisconsin|wyoming|ontario|quebec|
    british columbia|alberta|manitoba|bavaria|bayern|hessen|sachsen|maharashtra|karnataka|tamil nadu|telangana|gujarat|
    west bengal|new south wales|queensland|catalunya|cataluna|andalucia|bretagne|normandie|ile-de-france|nrw""".replace(
        "\n", ""
    )
    .replace("    ", "")
    .split("|")
)
_CITIES = frozenset(
    """berlin|hamburg|munich|munchen|koln|cologne|frankfurt|frankfurt am main|stuttgart|dusseldorf|dortmund|essen|leipzig|bremen|dresden|hannover|
    nurnberg|nuremberg|duisburg|bochum|bonn|karlsruhe|mannheim|augsburg|wien|vienna|graz|linz|salzburg|innsbruck|zurich|geneva|geneve|genf|basel|
    bern|lausanne|winterthur|paris|lyon|marseille|toulouse|nice|nantes|strasbourg|montpellier|bordeaux|lille|rennes|grenoble|dijon|angers|tours|
    madrid|barcelona|valencia|sevilla|seville|zaragoza|malaga|bilbao|murcia|granada|alicante|vigo|gijon|london|manchester|birmingham|leeds|glasgow|
    edinburgh|liverpool|bristol|sheffield|cardiff|belfast|cambridge|oxford|nottingham|dublin|cork|amsterdam|rotterdam|utrecht|den haag|the hague|eindhoven|
    brussels|bruxelles|antwerp|ghent|gent|luxembourg|rome|roma|milan|milano|turin|torino|naples|napoli|florence|firenze|bologna|lisbon|lisboa|porto|
    copenhagen|stockholm|gothenburg|oslo|helsinki|warsaw|krakow|wroclaw|prague|praha|budapest|bucharest|sofia|athens|istanbul|moscow|kyiv|tallinn|riga|
    vilnius|new york|new york city|nyc|los angeles|chicago|houston|phoenix|philadelphia|san antonio|san diego|dallas|san jose|austin|
    san francisco|seattle|denver|washington|boston|nashville|detroit|portland|las vegas|baltimore|milwaukee|atlanta|miami|minneapolis|tampa|
    new orleans|cleveland|pittsburgh|cincinnati|raleigh|charlotte|orlando|sacramento|oakland|palo alto|mountain view|toronto|montreal|vancouver|
    calgary|ottawa|edmonton|mexico city|ciudad de mexico|guadalajara|bogota|lima|santiago|buenos aires|sao paulo|rio de janeiro|bangalore|
    bengaluru|mumbai|delhi|new delhi|hyderabad|chennai|pune|kolkata|singapore|tokyo|osaka|beijing|shanghai|shenzhen|hong kong|seoul|
    sydney|melbourne|brisbane|perth|auckland|wellington|cape town|johannesburg|nairobi|lagos|cairo|dubai|abu dhabi|tel aviv|
    tubingen|heidelberg|freiburg|gottingen|jena|aachen|munster|kiel|rostock|potsdam|ulm|regensburg|wurzburg|darmstadt|wolfsburg|erlangen""".replace(
        "\n", ""
    )
    .replace("    ", "")
    .split("|")
)
_REMOTE = re.compile(
    r"^\(?(?:fully |100 ?% )?(?:remote|home ?office|hybrid|on-?site|teletravail|télétravail|remoto|teletrabajo)\b.{0,20}$",
    re.IGNORECASE,
)
_NOT_PLACE = re.compile(
    r"\b(?:university|universität|college|school|inc|gmbh|ltd|llc|group|bank|institute|université|hospital|corp|company)\b",
    re.IGNORECASE,
)
_NAME = r"[^\W\d_][\w.'’-]*(?:[ -][\w.'’()-]+){0,4}"
_POSTED = re.compile(rf"\b(?P<code>(?:D-|A-|CH-|F-)?\d{{4,5}})\s+(?P<city>{_NAME})")
_STATED = re.compile(
    rf"(?P<city>{_NAME}),\s*(?P<region>[A-Z]{{2,3}})\b\.?(?:,?\s+(?P<code>\d{{5}}(?:-\d{{4}})?|[A-Z]\d[A-Z] ?\d[A-Z]\d))?"
)


def country_of(text: str) -> str | None:
    """The code of a country, by its name."""
    return (
        COUNTRIES.get(plain(text))
        or COUNTRIES.get(text.strip().casefold())
        or COUNTRIES.get(plain(text).replace(" ", "-"))
    )


def is_region(text: str) -> bool:
    return text.strip() in _STATES or plain(text) in _STATE_NAMES


def is_place(text: str) -> bool:
    """Whether a text names a place and nothing else: a known city, "City, Country", "City, ST", "Remote"."""
    said = text.strip(" ()|,;·•")
    if not said or len(said) > 60 or (any(one.isdigit() for one in said) and not _POSTED.match(said)):
        return False
    if _REMOTE.match(said):
        return True
    parts = [part.strip() for part in re.split(r"[,/]| [-–|] | & | und | and ", said) if part.strip()]
    if not parts or len(parts) > 4:
        return False
    bare = [re.sub(r"\s*\([^)]*\)$", "", part) for part in parts]
    known = [
        plain(part) in _CITIES or country_of(part) is not None or is_region(part) or _posted(part) for part in bare
    ]
    if all(known):
        return True
    if len(parts) == 1 or any(mark in said for mark in (" & ", " und ", " and ", " – ", " - ", " | ")):
        return False
    if len(parts) > 2 and not known[0] and known[1] and not is_region(parts[1]):
        return False  # a company and where it is
    if not (country_of(bare[-1]) is not None or is_region(bare[-1])) or not all(
        len(part.split()) <= 3 for part in parts
    ):
        return False
    found = _NOT_PLACE.search(said)
    return found is None or (found.group().lower() == "college" and bare[-1] in _STATES and len(parts) == 2)


def sure_place(text: str) -> bool:
    """Whether a place begins with a city that is known: "Berlin, Germany", and not "Acme, Germany"."""
    if text.rpartition(",")[2].strip() in _STATES:
        return True
    first = re.split(r"[,/(]| [-–|] ", text.strip(" ()"))[0].strip()
    return (
        plain(first) in _CITIES
        or country_of(first) is not None
        or is_region(first)
        or bool(_REMOTE.match(first))
        or _posted(first)
    )


def _posted(text: str) -> bool:
    found = _POSTED.match(text)
    return found is not None and found.end() >= len(text) - 1


def split_place(text: str) -> tuple[str, str] | None:
    """What stands before a place at the end of a text, and the place: "Google, Zurich, Switzerland"."""
    pieces = [piece.strip() for piece in text.split(",")]
    for count in (3, 2, 1):
        if len(pieces) > count:
            place = ", ".join(pieces[-count:])
            if is_place(place) and (count == 1 or plain(pieces[-count]) in _CITIES or count == 2):
                return ", ".join(pieces[:-count]), place
    return None


def locate(text: str) -> dict[str, str] | None:
    """The parts of an address in a text: city, region, postal code, country."""
    found: dict[str, str]
    posted = _POSTED.search(text)
    if posted is not None and not re.fullmatch(r"(?:19|20)\d\d", posted["code"]):
        city = re.split(r"\s+[-–|•·]|,", posted["city"])[0].strip()
        found = {"postal_code": posted["code"], "city": city}
        street = text[: posted.start()].strip(" ,•|·-–")
        if street and re.search(r"\d", street) and len(street) < 60:
            found["address"] = street
        rest = [country_of(piece.strip(" .")) for piece in re.split(r"[,•|·()]|\s[-–]\s", text[posted.end("code") :])]
        for one in rest:
            if one is not None:
                found["country_code"] = one
        return found
    stated = _STATED.search(text)
    if stated is not None and stated["region"] in _STATES:
        found = {"city": stated["city"].strip(), "region": stated["region"]}
        if stated["code"]:
            found["postal_code"] = stated["code"]
        return found
    pieces = [piece.strip() for piece in re.split(r"[|•·;\t]|\s[-–]\s", text) if piece.strip()]
    for piece in pieces:
        if not is_place(piece) or _REMOTE.match(piece):
            continue
        parts = [part.strip(" ()") for part in re.split(r"[,()]", piece) if part.strip(" ()")]
        country = country_of(parts[-1])
        found = {}
        if plain(parts[0]) in _CITIES or country is None or len(parts) > 1:
            found["city"] = parts[0]
        if country is not None and (len(parts) > 1 or "city" not in found):
            found["country_code"] = country
        if len(parts) > 1 and (is_region(parts[1]) or (len(parts) > 2 and country is not None)):
            found["region"] = parts[1]
        return found
    return None
