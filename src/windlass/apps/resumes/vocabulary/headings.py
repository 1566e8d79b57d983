"""The headings of a resume's sections in English, German, French, Spanish, Italian, Portuguese and Dutch."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal, TypeAlias

Section: TypeAlias = Literal[
    "contact", "summary", "work", "education", "skills", "languages", "certificates", "projects", "awards",
    "publications", "volunteer", "interests", "references", "other",
]  # fmt: skip

_SAID: dict[Section, str] = {
    "contact": """contact|contacts|contact details|contact information|contact info|contact me|personal information|personal details|
        personal data|personal info|personal|details|get in touch|links|social|social media|online|profiles|find me online|
        kontakt|kontaktdaten|personliche daten|personliche angaben|angaben zur person|zur person|personalien|personliches|
        anschrift|kontaktinformationen|coordonnees|contacts et coordonnees|informations personnelles|etat civil|me contacter|
        contacto|datos personales|informacion personal|informacion de contacto|datos de contacto|contatti|dati personali|
        informazioni personali|contato|dados pessoais|contatos|informacoes pessoais|contactgegevens|persoonlijke gegevens|
        personalia|persoonsgegevens""",
    "summary": """summary|professional summary|career summary|executive summary|profile|professional profile|personal profile|
        career profile|about|about me|objective|career objective|professional objective|personal statement|overview|introduction|
        bio|biography|who i am|summary of qualifications|qualifications summary|profile summary|professional overview|
        career highlights|career overview|resume summary|resume objective|statement|mission|
        profil|kurzprofil|uber mich|zusammenfassung|personliches profil|berufliches profil|profil professionnel|ziel|karriereziel|
        berufsziel|kurzvorstellung|zu meiner person|berufliche zielsetzung|qualifikationsprofil|
        a propos|a propos de moi|resume|resume professionnel|objectif|objectif professionnel|presentation|accroche|synthese|
        qui suis je|profil personnel|
        perfil|perfil profesional|resumen|resumen profesional|sobre mi|objetivo|objetivo profesional|extracto|acerca de mi|
        presentacion|profilo|profilo professionale|chi sono|sommario|obiettivo|resumo|resumo profissional|perfil profissional|
        sobre mim|objetivo profissional|profiel|samenvatting|over mij|persoonlijk profiel""",
    "work": """experience|experiences|work experience|professional experience|employment|employment history|work history|career history|
        career|professional background|relevant experience|related experience|industry experience|job history|positions held|
        professional history|work|employment experience|experience professional|internships|internship experience|internship|
        internships and experience|other experience|additional experience|selected experience|technical experience|
        work and experience|professional career|career experience|working experience|my experience|where i ve worked|jobs|
        engineering experience|teaching experience|research experience|clinical experience|nursing experience|sales experience|
        management experience|leadership experience|previous experience|recent experience|earlier experience|earlier career|
        early career|experience summary|military experience|military service|consulting experience|
        berufserfahrung|berufserfahrungen|beruflicher werdegang|berufspraxis|praktische erfahrung|praktische erfahrungen|werdegang|
        berufliche erfahrung|berufliche erfahrungen|berufliche stationen|beruflicher hintergrund|arbeitserfahrung|
        beruflicher verlauf|berufstatigkeit|berufliche tatigkeit|berufliche tatigkeiten|tatigkeiten|praktika|praktikum|
        berufliche laufbahn|berufslaufbahn|karriere|erfahrung|erfahrungen|stationen|anstellungen|praxiserfahrung|nebentatigkeiten|
        relevante berufserfahrung|praktika und nebentatigkeiten|
        experience professionnelle|experiences professionnelles|parcours professionnel|emplois|carriere|parcours|stages|stage|
        experiences de travail|experience de travail|historique d emploi|
        experiencia|experiencias|experiencia profesional|experiencia laboral|historial laboral|trayectoria profesional|trayectoria|
        experiencias profesionales|carrera profesional|empleo|historial profesional|practicas|vida laboral|
        esperienza|esperienze|esperienza lavorativa|esperienze lavorative|esperienza professionale|esperienze professionali|
        experiencia profissional|experiencias profissionais|historico profissional|percurso profissional|
        werkervaring|ervaring|loopbaan|werkgeschiedenis|professionele ervaring|arbeidsverleden|stages""",
    "education": """education|academic background|academic qualifications|educational background|education and training|academic history|
        academics|education history|qualifications|educational qualifications|academic education|schooling|studies|university|
        degrees|academic record|academic profile|education qualifications|educational qualification|academic credentials|
        formal education|education background|training and education|academic details|my education|
        ausbildung|bildung|bildungsweg|studium|schulbildung|akademischer werdegang|akademische ausbildung|hochschulbildung|
        schulische ausbildung|bildungsgang|ausbildung und studium|studium und ausbildung|aus und weiterbildung|ausbildungsweg|
        hochschulausbildung|schule|schullaufbahn|schulausbildung|schul und berufsausbildung|berufsausbildung|akademische laufbahn|
        schulischer werdegang|studium und schule|schulbildung und studium|akademischer hintergrund|ausbildungen|
        formation|formations|etudes|formation academique|formations academiques|diplomes|cursus|scolarite|education et formation|
        diplomes et formations|formation et diplomes|parcours academique|parcours scolaire|cursus scolaire|cursus universitaire|
        formation universitaire|formation initiale|parcours universitaire|
        educacion|formacion|formacion academica|estudios|educacion y formacion|titulos|datos academicos|estudios realizados|
        trayectoria academica|educacion academica|formacion reglada|titulacion|
        istruzione|formazione|istruzione e formazione|titoli di studio|studi|educacao|formacao|formacao academica|escolaridade|
        historico academico|percurso academico|opleiding|opleidingen|onderwijs|educatie|studie""",
    "skills": """skills|highlights|technical skills|key skills|core skills|core competencies|competencies|competences|expertise|areas of expertise|
        technologies|technical proficiencies|technical expertise|tools|tech stack|technology|technology stack|proficiencies|
        skills and abilities|abilities|strengths|key competencies|professional skills|relevant skills|soft skills|hard skills|
        technical competencies|software|software skills|computer skills|it skills|skill set|skillset|skill summary|skills summary|
        tools and technologies|technologies and tools|technical knowledge|skills and tools|skills and technologies|capabilities|
        additional skills|specialties|specialities|technical summary|core strengths|skill highlights|key strengths|digital skills|
        programming skills|programming languages|programming|what i know|knowledge|areas of strength|other skills|technical|
        technical skills and tools|skills and expertise|skills expertise|core qualifications|personal skills|interpersonal skills|
        clinical skills|design skills|
        kenntnisse|fahigkeiten|kompetenzen|it kenntnisse|edv kenntnisse|fachkenntnisse|fahigkeiten und kenntnisse|qualifikationen|
        technische kenntnisse|kenntnisse und fahigkeiten|starken|besondere kenntnisse|weitere kenntnisse|kernkompetenzen|software|
        technologien|technische fahigkeiten|fachliche kompetenzen|fachliche kenntnisse|programmierkenntnisse|technische skills|edv|
        computerkenntnisse|pc kenntnisse|schlusselkompetenzen|zusatzqualifikationen|softwarekenntnisse|soziale kompetenzen|
        sonstige kenntnisse|personliche starken|werkzeuge|programmiersprachen|it skills|methodenkompetenz|
        competences techniques|competences cles|savoir faire|outils|competences informatiques|informatique|atouts|savoir etre|
        domaines de competences|domaines d expertise|qualites|aptitudes|competences professionnelles|logiciels|connaissances|
        principales competences|
        habilidades|competencias|aptitudes|conocimientos|habilidades tecnicas|competencias tecnicas|conocimientos tecnicos|destrezas|
        conocimientos informaticos|informatica|capacidades|herramientas|tecnologias|competencias clave|habilidades y competencias|
        habilidades profesionales|aptitudes principales|fortalezas|
        competenze|capacita|competenze tecniche|abilita|capacita e competenze|competenze informatiche|competenze digitali|
        competencias e habilidades|conhecimentos|vaardigheden|competenties|kennis|computervaardigheden|technische vaardigheden""",
    "languages": """languages|language skills|foreign languages|language proficiency|language|languages spoken|linguistic skills|
        sprachen|sprachkenntnisse|fremdsprachen|fremdsprachenkenntnisse|sprachliche kenntnisse|sprachkompetenzen|langues|
        langues etrangeres|competences linguistiques|langues parlees|idiomas|lenguas|conocimientos de idiomas|lingue|
        lingue straniere|conoscenze linguistiche|competenze linguistiche|linguas|talen|talenkennis""",
    "certificates": """certifications|certification|certificates|certificate|licenses|licences|professional certifications|licenses certifications|
        credentials|professional development|courses|training|trainings|courses and certifications|continuing education|
        online courses|accreditations|professional training|relevant certifications|certifications licenses|licensure|
        professional qualifications|professional licenses|additional training|workshops|courses and training|
        zertifikate|zertifizierungen|weiterbildung|weiterbildungen|fortbildung|fortbildungen|kurse|lizenzen|schulungen|seminare|
        berufliche weiterbildung|weiterbildung und zertifikate|zertifikate und weiterbildungen|fort und weiterbildung|
        certificats|certification professionnelle|formations complementaires|formation continue|habilitations|
        formation complementaire|certificaciones|certificados|cursos|cursos y certificaciones|formacion complementaria|
        formacion adicional|licencias|otros cursos|certificazioni|certificati|corsi|certificacoes|certificados|
        cursos complementares|certificaten|cursussen|certificeringen|trainingen""",
    "projects": """projects|personal projects|key projects|selected projects|academic projects|side projects|notable projects|project experience|
        project work|relevant projects|project|open source|open source projects|open source contributions|portfolio|recent projects|
        major projects|technical projects|university projects|student projects|my projects|project highlights|
        projekte|eigene projekte|ausgewahlte projekte|projekterfahrung|personliche projekte|private projekte|projektliste|
        projektarbeit|projets|projets personnels|projets academiques|realisations|projets realises|proyectos|
        proyectos personales|proyectos destacados|progetti|projetos|projetos pessoais|projecten|persoonlijke projecten""",
    "awards": """awards|honors|honours|awards and honors|honors and awards|achievements|key achievements|accomplishments|scholarships|
        awards and achievements|recognition|honors awards|awards honors|distinctions|prizes|fellowships|grants|
        awards and recognition|academic honors|awards and scholarships|scholarships and awards|selected achievements|
        major achievements|academic achievements|
        auszeichnungen|preise|stipendien|erfolge|ehrungen|auszeichnungen und stipendien|preise und auszeichnungen|
        prix|recompenses|bourses|prix et distinctions|distinctions et prix|premios|logros|reconocimientos|
        premios y reconocimientos|becas|distinciones|premi|riconoscimenti|premiacoes|premios e reconhecimentos|prijzen|
        onderscheidingen""",
    "publications": """publications|selected publications|papers|research papers|articles|patents|publications and patents|conference papers|
        presentations|talks|publications and presentations|research publications|conferences|books|writing|
        publikationen|veroffentlichungen|vortrage|patente|publicaciones|articulos|patentes|ponencias|pubblicazioni|publicacoes|
        publicaties|brevets|conferences et publications""",
    "volunteer": """volunteer|volunteering|volunteer experience|volunteer work|community service|community involvement|community|
        extracurricular activities|activities|leadership|leadership and activities|extracurriculars|volunteerism|
        leadership activities|extra curricular activities|leadership and involvement|campus involvement|memberships|affiliations|
        professional affiliations|professional memberships|associations|civic engagement|involvement|
        ehrenamt|ehrenamtliche tatigkeit|ehrenamtliche tatigkeiten|ehrenamtliches engagement|soziales engagement|engagement|
        freiwilligenarbeit|gesellschaftliches engagement|mitgliedschaften|ausserschulisches engagement|
        benevolat|engagements|vie associative|activites associatives|engagement associatif|experience associative|
        voluntariado|experiencia de voluntariado|actividades|actividades extracurriculares|volontariato|
        trabalho voluntario|vrijwilligerswerk|nevenactiviteiten""",
    "interests": """interests|hobbies|hobbies and interests|interests and hobbies|personal interests|activities and interests|
        interests and activities|other interests|passions|
        interessen|hobbys|interessen und hobbys|hobbys und interessen|freizeit|personliche interessen|freizeitinteressen|
        freizeitaktivitaten|
        centres d interet|centre d interet|loisirs|interets|loisirs et interets|centres d interets|activites|passions|
        intereses|aficiones|pasatiempos|intereses personales|hobbies e intereses|interessi|hobby|interesses|passatempos|
        interesses|hobby s""",
    "references": """references|referees|references available upon request|referenzen|referencias|referenze|referenties|
        references professionnelles|recommendations|testimonials""",
    "other": """additional information|other|miscellaneous|additional|further information|other information|signature|
        sonstiges|weiteres|weitere informationen|weitere angaben|zusatzliche informationen|fuhrerschein|autre|autres|divers|
        informations complementaires|otros|otros datos|informacion adicional|datos de interes|altro|ulteriori informazioni|
        outros|informacoes adicionais|overig|availability|work authorization|visa status|declaration|militardienst|wehrdienst|
        zivildienst|publications list|table of contents|permis|key facts""",
}  # fmt: skip

_OF: dict[str, Section] = {}
for _section, _names in _SAID.items():
    for _name in _names.split("|"):
        _OF.setdefault(" ".join(_name.split()), _section)

_JOINED = re.compile(r"\s+(?:and|und|et|y|e|en|amp)\s+|\s*[&/,+|]\s*")
_ASIDE = re.compile(r"^\W*(?:\d{1,2}|[ivx]{1,4}|[a-h])[.)]\s+")
_MORE = {
    "top",
    "additional",
    "professional",
    "relevant",
    "selected",
    "key",
    "other",
    "technical",
    "my",
    "personal",
    "current",
}


def plain(text: str) -> str:
    """Small letters without accents and marks, one space between words."""
    if not text.isascii():
        text = "".join(
            one for one in unicodedata.normalize("NFKD", text.replace("ß", "ss")) if not unicodedata.combining(one)
        )
    return " ".join(re.sub(r"[^\w&/+|,]|_", " ", text.casefold()).split())


@lru_cache(maxsize=4096)
def section_of(text: str) -> Section | None:
    """Which section a line would begin, were it a heading."""
    if len(text) > 64 or not any(one.isalpha() for one in text):
        return None
    said = plain(_ASIDE.sub("", text))
    said = said.strip("&/+|, ")
    if not said or said.count(" ") > 6:
        return None
    whole = _OF.get(said) or _OF.get(
        " ".join(word for word in said.replace(",", " ").split() if word not in {"&", "/", "|", "+"})
    )
    if whole is not None:
        return whole
    continued = re.sub(r"\s*(?:continued|cont|fortsetzung|suite|continuacion)$", "", said)
    if continued != said:
        return section_of(continued)
    parts = [part for part in _JOINED.split(said) if part]
    if len(parts) > 1:
        found: list[Section | None] = [_OF.get(part) or _OF.get(_less(part)) for part in parts]
        if all(found):
            return _best([one for one in found if one is not None])
        return None
    return _OF.get(_less(said))


_WEIGHTIER: tuple[Section, ...] = (
    "work", "education", "skills", "certificates", "projects", "languages", "awards", "volunteer",
)  # fmt: skip


def _less(said: str) -> str:
    """Without a word that only adds colour: "relevant coursework"."""
    first, _, rest = said.partition(" ")
    return rest if first in _MORE and rest else said


def _best(found: list[Section]) -> Section:
    """Of "Skills & Interests" the one that matters more."""
    for section in _WEIGHTIER:
        if section in found:
            return section
    return found[0]
