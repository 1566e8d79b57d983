"""Words by which a job title is known, and words by which a company is: in several languages."""

from __future__ import annotations

import re
from functools import lru_cache

from windlass.apps.resumes.vocabulary.headings import plain

_TITLES_SAID = """
accountant account actor actuary administrator advisor adviser advocate agent analyst apprentice architect artist
assistant associate attorney auditor author barista bartender bookkeeper broker builder buyer captain caregiver
carpenter cashier ceo cfo chair chairman chef chemist chief cio cleaner clerk clinician cmo co-founder cofounder
coach commander concierge conductor consultant contractor controller cook coo coordinator copywriter counsel
counselor counsellor cto curator dentist deputy designer developer director dispatcher doctor driver economist
editor educator electrician engineer estimator evangelist examiner executive expert fellow filmmaker founder foreman
freelance freelancer generalist geologist graduate guard guide handler head helper host hostess hygienist
illustrator inspector instructor intern internship interpreter investigator janitor journalist judge keeper laborer
labourer lawyer lead leader lecturer librarian lifeguard machinist maintainer manager marketer mechanic mediator
member mentor merchandiser midwife model moderator musician nanny nurse officer operator optometrist organizer owner
painter paralegal paramedic partner pharmacist photographer physician physicist physiotherapist pilot planner
plumber postdoc practitioner preceptor president principal producer professor programmer promoter proofreader
psychologist publicist realtor receptionist recruiter registrar rep reporter representative researcher resident
reviewer sailor salesman salesperson scholar scientist secretary sergeant server sre shopper specialist staff
statistician stewardess steward stocker strategist student supervisor surgeon surveyor teacher teller tester
therapist trader trainee trainer translator treasurer tutor underwriter usher vet veterinarian videographer
volunteer vp waiter waitress warden welder worker writer technician technologist technicien qa ux devops webmaster
sysadmin dba scrum superintendent attendant bookseller crew ta ra sales-manager teamlead undergraduate extern
externship apprenticeship clerkship residency fellowship ambassador abteilungsleiter abteilungsleiterin anwalt
anwaltin arzt arztin assistent assistentin assistenz ausbilder auszubildender auszubildende azubi bereichsleiter
berater beraterin betreuer betreuerin buchhalter buchhalterin chefarzt dozent dozentin einkaufer einkauferin
elektriker entwickler entwicklerin erzieher erzieherin fachkraft fachinformatiker fahrer filialleiter filialleiterin
geschaftsfuhrer geschaftsfuhrerin gesellschafter gruppenleiter gruppenleiterin hausmeister hilfskraft ingenieur
ingenieurin jurist juristin kauffrau kaufmann koch kochin koordinator koordinatorin krankenpfleger krankenschwester
lagerist lehrer lehrerin lehrkraft leiter leiterin leitung mechaniker mechatroniker mitarbeiter mitarbeiterin
pflegefachkraft pfleger pflegerin praktikant praktikantin praktikum programmierer programmiererin projektleiter
projektleiterin projektmanager projektmanagerin referent referentin redakteur redakteurin referendar sachbearbeiter
sachbearbeiterin schreiner sekretar sekretarin sozialarbeiter sozialarbeiterin spezialist spezialistin steuerberater
steuerfachangestellte stellvertretender studentin teamleiter teamleiterin techniker technikerin tutorin verkaufer
verkauferin vertriebsleiter vertriebsleiterin vertriebsmitarbeiter volontar volontarin vorstand werkstudent
werkstudentin wissenschaftler wissenschaftlerin architektin designerin managerin trainerin verwaltungsangestellte
aushilfe zivildienstleistender acheteur acheteuse adjoint adjointe administrateur administratrice agente
aide-soignant aide-soignante alternant alternante analyste animateur animatrice apprenti apprentie architecte
assistante attache attachee auditeur auditrice avocat avocate cadre caissier caissiere charge chargee chauffeur
chercheur chercheuse cheffe coiffeur coiffeuse comptable concepteur conceptrice conducteur conseiller conseillere
consultante controleur controleuse coordinateur coordinatrice cuisinier cuisiniere delegue developpeur developpeuse
directeur directrice educateur educatrice electricien employe employee enseignant enseignante expert-comptable
formateur formatrice gerant gerante gestionnaire graphiste hotesse infirmier infirmiere informaticien ingenieure
journaliste juriste magasinier mecanicien medecin ouvrier pharmacien plombier preparateur professeur professeure
programmeur psychologue redacteur redactrice responsable secretaire serveur serveuse soudeur stagiaire technicienne
traducteur traductrice vendeur vendeuse veterinaire chefe doctorant doctorante abogado abogada administrativo
administrativa administrador administradora analista asesor asesora asistente auxiliar ayudante becario becaria
camarero camarera cajero cajera cocinero cocinera comercial consultor consultora contable contador contadora
coordinador coordinadora dependiente dependienta desarrollador desarrolladora directora disenador disenadora docente
economista ejecutivo ejecutiva electricista encargado encargada enfermero enfermera especialista gerente gestor
gestora ingeniero ingeniera investigador investigadora jefe jefa maestro maestra medico operario operaria periodista
profesor profesora programador programadora psicologo psicologa recepcionista redactor redactora repartidor
secretaria secretario supervisora tecnico tecnica teleoperador traductor traductora vendedor vendedora arquitecto
arquitecta assistente avvocato commesso consulente direttore direttrice impiegato impiegata infermiere infermiera
ingegnere insegnante operaio progettista programmatore responsabile ricercatore sviluppatore tirocinante
desenvolvedor engenheiro engenheira estagiario estagiaria medewerker ontwikkelaar adviseur stagiair docent verkoper
verpleegkundige leraar beheerder
"""
_TITLES = frozenset(_TITLES_SAID.split())
_ENDINGS = (
    "ingenieur", "ingenieurin", "entwickler", "entwicklerin", "leiter", "leiterin", "manager", "managerin", "berater", "beraterin", "techniker", "technikerin",
    "assistent", "assistentin", "kaufmann", "kauffrau", "mitarbeiter", "mitarbeiterin", "referent", "referentin", "pfleger", "pflegerin", "lehrer", "lehrerin",
    "architekt", "architektin", "student", "studentin", "praktikant", "praktikantin", "mechaniker", "verkaufer", "verkauferin", "fachkraft", "hilfskraft", "analyst",
    "informatiker", "informatikerin", "wissenschaftler", "wissenschaftlerin", "angestellte", "angestellter", "koordinator", "koordinatorin", "fuhrer", "fuhrerin",
    "trainer", "designer", "arzt", "arztin", "schwester", "meister", "meisterin", "assistenz", "leitung", "praktikum", "spezialist", "controller", "administrator",
)  # fmt: skip
_WITHIN_SAID = """
senior junior sr jr lead chief head of vice assistant associate principal staff interim regional national global
software web mobile data full-stack fullstack frontend backend front-end back-end cloud security product project
program marketing sales human resources customer business financial operations research teaching office executive
general medical registered
"""
_WITHIN = frozenset(_WITHIN_SAID.split())
_COMPANY = re.compile(
    r"\b(?:gmbh|mbh|ag|kg|kgaa|ohg|e\.\s?v\.|gbr|se|ug|inc|incorporated|llc|l\.l\.c|ltd|limited|llp|plc|corp|corporation|co|company|"
    r"s\.?a\.?r\.?l|s\.?a\.?s|s\.?a|s\.?l|s\.?l\.?u|s\.?p\.?a|s\.?r\.?l|b\.?v|n\.?v|pty|oy|ab|as|aps|k\.?k|lda|ltda|sasu|eurl|snc|scop|pvt)\b\.?",
    re.IGNORECASE,
)
_KINDS_SAID = """
university college institute school academy hospital clinic bank group holding holdings technologies technology tech
solutions systems services consulting consultants partners labs lab laboratories studio studios agency media
networks software industries enterprises international global foundation ministry department council government
association society store stores restaurant hotel cafe pharmacy airlines insurance capital ventures logistics foods
energy motors automotive pharmaceuticals pharma communications telecom center centre church museum library army navy
force commission authority corporation company trust union press publishing universitat hochschule fachhochschule
klinikum krankenhaus sparkasse versicherung stadtwerke verlag werke bundesamt ministerium stiftung verein schule
gymnasium institut kanzlei praxis apotheke gesellschaft gruppe landesamt stadt amt unternehmensberatung agentur buro
universite ecole lycee hopital banque groupe societe mairie cabinet agence clinique entreprise assurances
laboratoire conseil universidad colegio instituto banco grupo empresa ayuntamiento agencia fundacion consultora
clinica escuela hoteles seguros universita ospedale banca gruppo azienda universidade gemeente ziekenhuis
universiteit bedrijf bakery brewery salon gym farms freelance self-employed selbststandig freiberuflich autonomo
independant startup inc corp analytics dynamics robotics interactive digital security healthcare health care biotech
therapeutics diagnostics realty properties construction engineering electronics
"""
_KINDS = frozenset(_KINDS_SAID.split())


@lru_cache(maxsize=4096)
def title_worth(text: str) -> float:
    """How much a text looks like a job title: 0 not at all, 1 and more surely."""
    words = plain(text).replace("/", " ").replace(",", " ").replace("&", " ").split()
    if not words or len(words) > 12:
        return 0.0
    worth = 0.0
    for at, word in enumerate(words):
        bare = word.removesuffix("in") if len(word) > 7 else word
        if word in _TITLES or bare in _TITLES or (word.endswith("s") and word[:-1] in _TITLES and len(word) > 5):
            worth += 1.0 if at >= len(words) // 2 or len(words) <= 4 else 0.7
        elif len(word) > 8 and word.endswith(_ENDINGS):
            worth += 1.0
        elif word in _WITHIN:
            worth += 0.15
    if re.search(r"\b[mwfdxh](?:/[mwfdxi*]){1,3}\b|:in\b|\*in\b|/-?in\b|·e\b|\(e\)|/a\b", text, re.IGNORECASE):
        worth += 0.6
    return min(worth, 2.0)


@lru_cache(maxsize=4096)
def company_worth(text: str) -> float:
    """How much a text looks like the name of a company."""
    worth = 0.0
    if _COMPANY.search(text):
        worth += 1.2
    words = plain(text).replace("/", " ").replace(",", " ").replace("&", " ").split()
    if any(word in _KINDS for word in words):
        worth += 0.7
    elif any(
        len(word) > 8
        and word.endswith(
            (
                "werke",
                "bank",
                "klinik",
                "klinikum",
                "verlag",
                "schule",
                "versicherung",
                "tech",
                "soft",
                "verein",
                "gruppe",
            )
        )
        for word in words
    ):
        worth += 0.6
    if "&" in text or re.search(r"\.(?:com|io|ai|org|net|de)\b", text):
        worth += 0.4
    if re.search(r"\b[a-z]+[A-Z]|\b[A-Z]{2,5}\b", text) and not text.isupper():
        worth += 0.15
    return worth
