"""People that do not exist: what their resumes say, in four languages, from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from unicodedata import normalize


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    title: str
    company: str
    place: str
    start: tuple[int, int]
    end: tuple[int, int] | None
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    degree: str
    area: str
    school: str
    place: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    language: str
    name: str
    label: str
    email: str
    phone: str
    place: str
    links: tuple[str, ...]
    summary: str
    jobs: tuple[Job, ...]
    studies: tuple[Study, ...]
    skills: tuple[tuple[str, tuple[str, ...]], ...]
    spoken: tuple[tuple[str, str], ...]
    certificates: tuple[tuple[str, str, int], ...]
    projects: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What people of one language are made of."""

    names: tuple[str, ...]
    titles: tuple[str, ...]
    companies: tuple[str, ...]
    places: tuple[str, ...]
    schools: tuple[tuple[str, str], ...]
    degrees: tuple[tuple[str, str], ...]
    points: tuple[str, ...]
    summary: str
    phones: tuple[str, ...]
    skills: tuple[tuple[str, tuple[str, ...]], ...]
    spoken: tuple[tuple[str, str], ...]
    certificates: tuple[tuple[str, str], ...]
    projects: tuple[tuple[str, str], ...]


POOLS: dict[str, Pool] = {
    "en": Pool(
        names=("Emily Carter", "Marcus O'Neill", "Priya Raghavan", "Daniel Kowalski", "Sofia Lindqvist", "James Whitfield", "Aisha Bello", "Grace Liu"),
        titles=(
            "Senior Software Engineer", "Product Manager", "Marketing Coordinator", "Registered Nurse", "Data Analyst", "Warehouse Associate",
            "Financial Controller", "Graphic Designer", "Customer Success Manager", "High School Teacher", "Sales Representative", "DevOps Engineer",
        ),
        companies=(
            "Northwind Traders", "Bluefin Analytics", "Harbor & Pine", "St. Mary's Hospital", "Quantico Robotics, Inc.", "Redwood Logistics LLC",
            "Meridian", "Acorn Foods", "Larkspur Media Group", "Tidewater Bank", "Orbit9", "Hillcrest Middle School",
        ),
        places=("Austin, TX", "Seattle, WA", "London, UK", "Toronto, Canada", "Chicago, IL", "Manchester, United Kingdom", "Denver, CO"),
        schools=(
            ("University of Texas at Austin", "Austin, TX"), ("Boston College", "Boston, MA"), ("King's College London", "London, UK"),
            ("Ohio State University", "Columbus, OH"), ("University of Toronto", "Toronto, Canada"),
        ),
        degrees=(
            ("Bachelor of Science", "Computer Science"), ("B.A.", "Economics"), ("Master of Science", "Data Science"), ("MBA", "Finance"),
            ("Bachelor of Arts", "Graphic Design"), ("B.S.", "Nursing"),
        ),
        points=(
            "Led a team of six and cut delivery times by 30 percent within one year",
            "Built reporting dashboards used by more than 200 colleagues across three offices",
            "Negotiated contracts with suppliers, saving $1.2M annually",
            "Introduced weekly reviews that raised customer satisfaction from 3.9 to 4.6",
            "Responsible for budgets, hiring and onboarding of new staff",
            "Migrated legacy services to a modern platform with no downtime",
            "Trained twelve new employees in safety procedures and record keeping",
            "Prepared monthly forecasts for senior management and presented them to the board",
        ),
        summary="Dedicated professional with {years} years of experience in demanding settings. Known for clear communication and for finishing what was begun. Looking for a role with room to grow.",
        phones=("(512) 555-0143", "+1 206-555-0199", "+44 20 7946 0958", "416.555.0112", "312-555-0177"),
        skills=(
            ("Programming Languages", ("Python", "Java", "SQL", "TypeScript")), ("Tools", ("Docker", "Git", "Excel", "Salesforce")),
            ("Methods", ("Scrum", "Budgeting", "A/B testing")),
        ),
        spoken=(("English", "Native"), ("Spanish", "Conversational"), ("French", "B2")),
        certificates=(("AWS Certified Solutions Architect", "Amazon Web Services"), ("Project Management Professional", "PMI"), ("Basic Life Support", "American Heart Association")),
        projects=(("Inventory Tracker", "A web application for small shops, built with Django and PostgreSQL"), ("Open Atlas", "Maps of cycling paths collected by volunteers")),
    ),
    "de": Pool(
        names=("Lena Hoffmann", "Jürgen Weiß", "Katharina Schäfer-Braun", "Tobias Krüger", "Mehmet Yılmaz", "Annika von der Heide", "Stefan Groß"),
        titles=(
            "Softwareentwickler", "Projektleiterin", "Vertriebsmitarbeiter im Außendienst", "Werkstudent Controlling", "Gesundheits- und Krankenpfleger",
            "Teamleiter Logistik", "Sachbearbeiterin Einkauf", "Konstruktionsingenieur", "Senior Consultant", "Bürokauffrau", "Leiter Qualitätssicherung",
        ),
        companies=(
            "Falkenberg Maschinenbau GmbH", "Nordlicht Versicherung AG", "Klinikum Ostsee", "Brandt & Söhne KG", "Rheintal Logistik GmbH & Co. KG",
            "Sonnweber Consulting", "Stadtwerke Hainburg", "Optikon", "Bergmann Elektrotechnik", "Deutsche Musterbank AG",
        ),
        places=("Berlin", "München", "Hamburg", "Köln", "Stuttgart", "Wien", "Zürich", "Leipzig"),
        schools=(
            ("Technische Universität Dresden", "Dresden"), ("Hochschule München", "München"), ("Universität Wien", "Wien"),
            ("Fachhochschule Dortmund", "Dortmund"), ("Gymnasium am Stadtpark", "Leipzig"), ("Humboldt-Universität zu Berlin", "Berlin"),
        ),
        degrees=(("Bachelor of Science", "Informatik"), ("Diplom-Ingenieur", "Maschinenbau"), ("Master of Arts", "Betriebswirtschaftslehre"), ("B.Eng.", "Elektrotechnik"), ("M.Sc.", "Wirtschaftsinformatik")),
        points=(
            "Leitung eines Teams von acht Mitarbeitenden in zwei Schichten",
            "Einführung eines neuen Warenwirtschaftssystems an drei Standorten",
            "Entwicklung von Schnittstellen zwischen SAP und dem Onlineshop",
            "Betreuung von Bestandskunden und Ausbau des Neukundengeschäfts um 25 %",
            "Erstellung monatlicher Berichte für die Geschäftsführung",
            "Verantwortlich für Budgetplanung, Einkauf und Reklamationen",
            "Optimierung der Abläufe in der Fertigung, Senkung der Ausschussquote auf 1,2 %",
        ),
        summary="Engagierte Fachkraft mit {years} Jahren Berufserfahrung. Strukturierte Arbeitsweise, hohe Einsatzbereitschaft und Freude an der Zusammenarbeit im Team.",
        phones=("+49 30 12345678", "0171 5550123", "+49 (0)89 555 0199", "+43 1 5550177", "0351/5550142"),
        skills=(
            ("Programmiersprachen", ("Java", "Python", "SQL")), ("EDV", ("MS Office", "SAP R/3", "DATEV")), ("Methoden", ("Scrum", "Kanban", "Six Sigma")),
        ),
        spoken=(("Deutsch", "Muttersprache"), ("Englisch", "verhandlungssicher"), ("Französisch", "Grundkenntnisse")),
        certificates=(("Ausbildereignungsprüfung", "IHK"), ("Scrum Master", "Scrum.org"), ("Staplerschein", "DEKRA")),
        projects=(("Vereinsverwaltung", "Webanwendung für die Mitglieder eines Sportvereins"), ("Wetterstation", "Messdaten mit einem Raspberry Pi")),
    ),
    "fr": Pool(
        names=("Camille Lefèvre", "Julien Moreau", "Aïcha Benali", "Élodie Garnier", "Thomas Dubois-Martin", "Nicolas Petit"),
        titles=(
            "Développeur Full Stack", "Cheffe de projet digital", "Assistante administrative", "Ingénieur d'études", "Chargé de communication",
            "Infirmière", "Responsable logistique", "Conseiller clientèle", "Comptable", "Technicien de maintenance",
        ),
        companies=(
            "Banque Riveral", "Groupe Altéa", "Hôpital Saint-Michel", "Novatek SAS", "Cabinet Morel & Associés", "Transports Delmas", "Mairie de Vannes",
            "Lumio", "Ateliers Bréhat", "Ferrand Industries SA",
        ),
        places=("Paris", "Lyon", "Nantes", "Toulouse", "Lille", "Bruxelles", "Bordeaux, France"),
        schools=(
            ("Université de Nantes", "Nantes"), ("École Centrale de Lyon", "Lyon"), ("IUT de Rennes", "Rennes"), ("Université Paris-Saclay", "Paris"),
            ("Lycée Clemenceau", "Nantes"),
        ),
        degrees=(("Master", "Informatique"), ("Licence", "Économie et gestion"), ("BTS", "Comptabilité"), ("DUT", "Techniques de commercialisation"), ("Diplôme d'ingénieur", "Génie industriel")),
        points=(
            "Encadrement d'une équipe de cinq personnes",
            "Conception et développement d'applications web pour des clients industriels",
            "Mise en place d'un outil de suivi des stocks sur quatre sites",
            "Gestion des plannings, des commandes et des relations fournisseurs",
            "Réduction des délais de traitement de 40 %",
            "Animation de réunions hebdomadaires avec les partenaires",
        ),
        summary="Professionnel rigoureux et dynamique avec {years} ans d'expérience. Esprit d'équipe, sens de l'organisation et goût du travail bien fait.",
        phones=("06 12 34 56 78", "+33 6 55 50 12 34", "01 55 50 01 77", "+32 2 555 01 42"),
        skills=(("Langages", ("PHP", "JavaScript", "Python")), ("Outils", ("Excel", "Sage", "Jira")), ("Méthodes", ("Agile", "Lean", "Merise"))),
        spoken=(("Français", "langue maternelle"), ("Anglais", "courant"), ("Espagnol", "notions")),
        certificates=(("TOEIC", "ETS"), ("Certification PSC1", "Croix-Rouge"), ("Prince2 Foundation", "AXELOS")),
        projects=(("Covoiturage local", "Application mobile pour les trajets quotidiens"), ("Jardin partagé", "Site de coordination des bénévoles")),
    ),
    "es": Pool(
        names=("María Fernández López", "Javier Ortega", "Lucía Ramírez Soto", "Andrés Castillo", "Carmen Núñez Vidal", "Pablo Iglesias Romero"),
        titles=(
            "Ingeniero de software", "Administrativa contable", "Jefa de producto", "Desarrolladora web", "Técnico de soporte", "Responsable de tienda",
            "Profesor de secundaria", "Enfermera", "Consultor SAP", "Dependiente", "Directora comercial",
        ),
        companies=(
            "Grupo Alborán", "Tecnalba S.L.", "Hospital Santa Lucía", "Banco del Duero", "Ayuntamiento de Gijón", "Zenit Consultores", "Iberlogic S.A.",
            "Mercadia", "Colegio San Telmo", "Hoteles Mirasol",
        ),
        places=("Madrid", "Barcelona", "Valencia", "Sevilla", "Bilbao, España", "Ciudad de México", "Bogotá, Colombia"),
        schools=(
            ("Universidad de Salamanca", "Salamanca"), ("Universidad Politécnica de Valencia", "Valencia"), ("Universidad Complutense de Madrid", "Madrid"),
            ("IES Cervantes", "Sevilla"), ("Universidad de los Andes", "Bogotá, Colombia"),
        ),
        degrees=(("Grado", "Ingeniería Informática"), ("Licenciatura", "Administración de Empresas"), ("Máster", "Marketing Digital"), ("Técnico Superior", "Administración y Finanzas"), ("Diplomatura", "Enfermería")),
        points=(
            "Gestión de un equipo de diez personas en dos turnos",
            "Desarrollo de aplicaciones web con Angular y Spring",
            "Implementación de un sistema de control de inventario",
            "Atención al cliente y resolución de incidencias",
            "Reducción de costes operativos en un 18 %",
            "Elaboración de informes mensuales para la dirección",
        ),
        summary="Profesional con {years} años de experiencia, orientado a resultados y con facilidad para el trabajo en equipo. Busco nuevos retos en una empresa en crecimiento.",
        phones=("+34 612 345 678", "655 501 234", "+52 55 5555 0123", "+57 1 555 0142"),
        skills=(("Lenguajes", ("Java", "Python", "SQL")), ("Herramientas", ("Excel", "SAP", "Jira")), ("Métodos", ("Scrum", "Kaizen", "CRM"))),
        spoken=(("Español", "nativo"), ("Inglés", "C1"), ("Francés", "intermedio")),
        certificates=(("Certificado de Profesionalidad", "SEPE"), ("First Certificate", "Cambridge"), ("Scrum Master", "Scrum Alliance")),
        projects=(("Huerto urbano", "Aplicación para coordinar a los vecinos"), ("Rutas", "Mapa de senderos de montaña")),
    ),
}  # fmt: skip


def person(language: str, seed: int) -> Person:
    """The same person for the same seed."""
    chance = random.Random(f"{language}{seed}")
    pool = POOLS[language]
    name = chance.choice(pool.names)
    count = chance.randint(2, 4)
    titles, companies = chance.sample(pool.titles, count), chance.sample(pool.companies, count)
    jobs: list[Job] = []
    year, month = 2024, chance.randint(1, 12)
    for at in range(count):
        length = chance.randint(1, 4)
        started = (year - length, chance.randint(1, 12))
        ended = None if at == 0 and chance.random() < 0.7 else (year, month)
        points = tuple(chance.sample(pool.points, chance.randint(2, 4)))
        jobs.append(
            Job(
                title=titles[at],
                company=companies[at],
                place=chance.choice(pool.places),
                start=started,
                end=ended,
                points=points,
            )
        )
        year, month = started[0], max(1, started[1] - 1)
    degrees, schools = chance.sample(pool.degrees, 2), chance.sample(pool.schools, 2)
    studies = [
        Study(degree=degree, area=area, school=school, place=place, start=year - 3 - 3 * at, end=year - 3 * at)
        for at, ((degree, area), (school, place)) in enumerate(zip(degrees, schools, strict=True))
    ][: chance.randint(1, 2)]
    first, last = _ascii(name.split()[0]), _ascii(name.split()[-1])
    links = (f"linkedin.com/in/{first}-{last}", f"github.com/{first}{last[:3]}")
    return Person(
        language=language, name=name, label=jobs[0].title, email=f"{first}.{last}@{chance.choice(('example.com', 'mail.example.org', 'example.net'))}",
        phone=chance.choice(pool.phones), place=chance.choice(pool.places), links=links[: chance.randint(0, 2)],
        summary=pool.summary.format(years=chance.randint(3, 20)), jobs=tuple(jobs), studies=tuple(studies),
        skills=tuple(chance.sample(pool.skills, chance.randint(2, 3))), spoken=pool.spoken[: chance.randint(2, 3)],
        certificates=tuple((*one, year + at) for at, one in enumerate(chance.sample(pool.certificates, chance.randint(1, 2)))),
        projects=tuple(chance.sample(pool.projects, chance.randint(0, 2))),
    )  # fmt: skip


def _ascii(text: str) -> str:
    for said, plain in (("ü", "ue"), ("ß", "ss"), ("ä", "ae"), ("ö", "oe"), ("ı", "i")):
        text = text.replace(said, plain)
    return "".join(one for one in normalize("NFKD", text.lower()) if (one.isalnum() and one.isascii()) or one == "-")
