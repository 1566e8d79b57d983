"""Names of skills that are more than one word or that have several names, and words that mean nothing by themselves."""

from __future__ import annotations

_SAME = """
javascript|js|ecmascript; typescript|ts; kubernetes|k8s; postgresql|postgres|psql; mongodb|mongo; machine learning|ml|maschinelles lernen|apprentissage automatique;
artificial intelligence|ai|künstliche intelligenz|ki|intelligence artificielle|inteligencia artificial; amazon web services|aws; google cloud|gcp|google cloud platform;
microsoft azure|azure; continuous integration|ci/cd|ci|continuous delivery|continuous deployment; user experience|ux|ux design; user interface|ui|ui design;
quality assurance|qa|qualitätssicherung|assurance qualité|control de calidad; natural language processing|nlp; infrastructure as code|iac; version control|git|github|gitlab;
node.js|nodejs|node; react|react.js|reactjs; vue|vue.js|vuejs; angular|angularjs|angular.js; next.js|nextjs; .net|dotnet|.net core|asp.net; c#|csharp; c++|cpp; golang|go;
rest|restful|rest api|rest apis|restful api; graphql; sql|mysql|t-sql|pl/sql; nosql; microsoft excel|excel|ms excel; microsoft office|ms office|office suite|ms-office;
search engine optimization|seo|suchmaschinenoptimierung|référencement; search engine marketing|sem; customer relationship management|crm; enterprise resource planning|erp;
key performance indicators|kpi|kpis; project management|projektmanagement|projektleitung|gestion de projet|gestion de projets|gestión de proyectos|managing projects;
product management|produktmanagement|gestion de produit; people management|mitarbeiterführung|team leadership|leading teams|teamleitung|management d'équipe|personalführung|gestión de equipos;
human resources|hr|personalwesen|ressources humaines|rrhh|recursos humanos; accounting|buchhaltung|buchführung|comptabilité|contabilidad; bookkeeping;
customer service|customer support|kundenservice|kundenbetreuung|service client|relation client|atención al cliente; sales|vertrieb|verkauf|vente|ventas;
marketing; controlling; procurement|purchasing|einkauf|achats|compras; supply chain|lieferkette|chaîne logistique|cadena de suministro; logistics|logistik|logistique|logística;
data analysis|data analytics|datenanalyse|analyse de données|análisis de datos; data science; data engineering; business intelligence|bi; power bi|powerbi; tableau; deep learning;
test automation|automated testing|testautomatisierung; unit testing|unit tests; test driven development|tdd; object oriented programming|oop|object-oriented; microservices|microservice;
distributed systems|verteilte systeme; agile|agil|agile methods|agile methodologies; scrum; kanban; lean; six sigma; devops; docker|containers|containerization; terraform; ansible; linux|unix;
python; java; kotlin; swift; rust; ruby; ruby on rails|rails; php; scala; perl; matlab; sap; salesforce; jira; confluence; figma; photoshop; illustrator; indesign; autocad; solidworks; html|html5; css|css3; sass;
django; flask; fastapi; spring|spring boot; hibernate; laravel; symfony; express; kafka; rabbitmq; redis; elasticsearch; spark|apache spark; hadoop; airflow; snowflake; dbt; pandas; numpy; pytorch; tensorflow; scikit-learn;
jenkins; github actions; prometheus; grafana; selenium; cypress; playwright; jest; pytest; bash|shell scripting; powershell; etl; datev; lexware; hubspot; google analytics; google ads; wordpress; shopify;
patient care|pflege|soins; first aid|erste hilfe|premiers secours; nursing|krankenpflege; medication administration; electronic health records|ehr|emr; triage;
risk management|risikomanagement; financial analysis|finanzanalyse|analyse financière; financial reporting; budgeting|budgetplanung|budget planning|budget; forecasting|forecasts; auditing|audit; tax|steuern; ifrs; us gaap|gaap; compliance; gdpr|dsgvo|rgpd;
stakeholder management; change management; business development|geschäftsentwicklung; account management; lead generation|neukundengewinnung; negotiation|verhandlung|verhandlungsgeschick|négociation|negociación; public speaking; presentation|presentation skills|präsentation;
communication|communication skills|kommunikationsfähigkeit|kommunikationsstärke|kommunikation|comunicación; teamwork|team player|teamfähigkeit|teamarbeit|esprit d'équipe|travail en équipe|trabajo en equipo;
leadership|führung|führungserfahrung|liderazgo; problem solving|problemlösung|résolution de problèmes|resolución de problemas; time management|zeitmanagement; attention to detail; critical thinking; analytical|analytical skills|analytisch;
organization|organisationstalent|organisational skills|organisation; mentoring|coaching; training|schulung; recruiting|recruitment|talent acquisition|personalbeschaffung; payroll|lohnabrechnung|paie|nóminas; onboarding;
warehouse|lager|entrepôt|almacén; inventory management|inventory|bestandsführung|gestion des stocks; forklift|stapler|staplerschein|cariste; production planning|fertigungsplanung; quality control|qualitätskontrolle; maintenance|instandhaltung|mantenimiento; cnc; plc|sps; electrical engineering|elektrotechnik; mechanical engineering|maschinenbau; civil engineering|bauingenieurwesen;
content marketing|content creation; social media|community management; copywriting; email marketing|e-mail marketing; event management|veranstaltungsmanagement; graphic design|grafikdesign|graphisme; video editing|videoschnitt; branding;
teaching|unterrichten|enseignement; curriculum development|lesson planning; classroom management; research|forschung|recherche|investigación; statistics|statistik|statistiques; economics;
cybersecurity|cyber security|information security|it-sicherheit|security; network administration|networking|netzwerke; active directory; itil; cloud|cloud computing; api|apis; saas; b2b; b2c; e-commerce|ecommerce|onlinehandel;
driver's license|driving license|driver's licence|führerschein|führerschein klasse b|permis b|permis de conduire|carnet de conducir;
bachelor|bachelor's degree|b.sc.|b.a.|bsc|bachelor of science|bachelor of arts|bachelorabschluss|licence|grado; master|master's degree|m.sc.|m.a.|msc|mba|masterabschluss|máster; phd|ph.d.|doctorate|promotion|doctorat; abitur|hochschulreife;
english|englisch|anglais|inglés|englischkenntnisse; german|deutsch|allemand|alemán|deutschkenntnisse; french|französisch|français|francés; spanish|spanisch|espagnol|español; italian|italienisch|italien|italiano
"""
GROUPS: tuple[tuple[str, ...], ...] = tuple(
    tuple(name.strip() for name in group.split("|")) for group in _SAME.replace("\n", "").split(";") if group.strip()
)
_IDLE_SAID = """
a an the and or of to in for with on at by from as is are be been being will would can could should may might must
shall have has had having do does did this that these those it its we you your our their they he she his her i me my
us them who whom which what when where why how all any both each few more most other some such no nor not only own
same so than too very s t just now also into over under up out about able across after again against along among
around because before between during etc every including less like many much off once per plus since through
throughout until upon via within without while work working works job role position team teams company companies
experience experienced years year strong good excellent great proven ability skills skill knowledge understanding
looking seeking join candidate candidates ideal required requirements requirement preferred responsibilities
responsible qualifications duties opportunity environment new help support ensure using use used well high highly
based related relevant minimum least bonus nice desired offer offers benefits salary equal employer apply please
contact day days time full part remote hybrid office location world people business customers clients develop
development design build building manage managing provide maintain create lead drive deliver und oder der die das
den dem des ein eine einen einem einer eines mit für von zu im am auf aus bei nach über unter sowie als auch sich
ist sind wir sie ihr ihre ihren unser unsere du dein deine bist hast kannst wirst haben werden können sehr gute gut
erfahrung kenntnisse aufgaben profil arbeit stelle unternehmen suchen bieten jahre mehrjährige abgeschlossene
idealerweise vorteil fähigkeit umgang bereich durch bis zum zur nicht eigenständige le la les un une de et ou en au
aux avec pour par sur dans est sont nous vous votre vos notre nos leur leurs ce cette ces que qui à son sa ses être
avoir expérience poste missions équipe entreprise connaissance connaissances maîtrise ans recherche recherchons
souhaité bonne el los las una unos unas y o u del al con para por sobre es su sus nuestro nuestra como más ser tener
experiencia puesto empresa equipo años buscamos conocimiento conocimientos requisitos funciones se lo
"""
IDLE = frozenset(_IDLE_SAID.split())
