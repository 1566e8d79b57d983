"""Degrees, and words by which a place of education is known."""

from __future__ import annotations

import re

DEGREE = re.compile(
    r"(?<![\w.])(?:"
    r"(?:Bachelor|Master|Associate|Doctor|Doctorate|Baccalaureate|Magister)(?:['’]?s)?(?:\s+of\s+(?:Science|Arts|Engineering|Business Administration|Laws?|Education|Fine Arts|Commerce|Technology|Music|Medicine|Philosophy|"
    r"Applied Sciences?|Applied Arts|Architecture|Nursing|Public Health|Public Administration|Social Work|Design|Computer Applications|Information Technology|Social Science|Economics|Research|Theology|Pharmacy|Dental Surgery|Veterinary Medicine|Divinity|"
    r"Professional Studies|Studies|Computing|Finance|Management|Surgery|Journalism|Communication))?(?:\s+[Dd]egree|\s+Diploma)?(?:\s+(?:\(\s*)?(?:Hons\.?|Honou?rs)\)?)?(?:\s*\((?:[A-Z][\w.]{0,6}\s?){1,2}\))?"
    r"|A\.B\.|S\.B\.|Sc\.B\.|B\.?\s?Sc\.?|M\.?\s?Sc\.?|B\.?\s?A\.?(?=[\s,(.|–-]|$)|M\.?\s?A\.?(?=[\s,(|–-]|$)|B\.?S\.?(?=[\s,(|–-]|$)|M\.?S\.?(?=[\s,(|–-]|$)|B\.?\s?Eng\.?|M\.?\s?Eng\.?|B\.?\s?Tech\.?|M\.?\s?Tech\.?|B\.?E\.?(?=[\s,(])|M\.?E\.?(?=[\s,(])|"
    r"B\.?Com\.?|M\.?Com\.?|BBA|MBA|EMBA|Executive MBA|Ph\.?\s?D\.?|D\.?Phil\.?|M\.?Phil\.?|J\.?D\.?(?=[\s,]|$)|M\.?D\.?(?=[\s,]|$)|LL\.?[BM]\.?|B\.?F\.?A\.?|M\.?F\.?A\.?|B\.?Ed\.?|M\.?Ed\.?|A\.?A\.?S?\.?(?=[\s,]|$)|A\.?S\.?(?=[\s,]|$)|BSN|MSN|BCA|MCA|MPH|MPA|MSW|BSc|MRes|PharmD|DDS|DVM|"
    r"High School Diploma|Secondary School Certificate|GED|Diploma|A[- ][Ll]evels?|GCSEs?|International Baccalaureate|Postgraduate (?:Diploma|Certificate)|Graduate Certificate|Associate Degree|Associate['’]?s?|Foundation Degree|HND|HNC|BTEC|PGCE|PGDip|"
    r"Diplom(?:[-–][^\W\d]+(?:\s?\(?(?:FH|Univ\.?|BA|TU|DH)\)?)?)?(?!\w)|Dipl\.?[-–][^\W\d]+\.?(?:\s?\((?:FH|Univ\.?|BA|TU|DH)\))?|Diplom\s?\(FH\)|Vordiplom|Magister(?: Artium)?|Staatsexamen|(?:Erstes|Zweites|1\.|2\.) Staatsexamen|Promotion|Dr\.\s?(?:rer\.|phil\.|med\.|ing\.|iur\.)[\s\w.]*|"
    r"(?:Allgemeine |Fachgebundene )?Hochschulreife|Fachhochschulreife|Abitur|Fachabitur|Mittlere Reife|Realschulabschluss|Hauptschulabschluss|Matura|Maturität|Berufsausbildung|Ausbildung(?: zu[mr]?)?|Lehre(?: als)?|Umschulung|Meisterbrief|"
    r"Licence(?: professionnelle)?|Maîtrise|Master(?: ?[12])|Mastère(?: spécialisé)?|Doctorat|Baccalauréat|Bac(?:\s?[+]\s?\d)?(?=[\s,(]|$)|BTS|DUT|BUT|DEUG|DESS|DEA|CAP|BEP|DEUST|Diplôme(?: d['’][^\W\d]+)?|Classes? préparatoires?|CPGE|Prépa|Brevet|Ingénieur diplômé|"
    r"Licenciatura|Licenciad[oa]|Grado(?: Superior| Medio)?|Graduad[oa]|Máster(?: Universitario| Oficial)?|Doctorado|Diplomatura|Bachillerato|Técnico Superior|Ciclo Formativo(?: de Grado (?:Superior|Medio))?|Ingenier[íi]a(?= )|Postgrado|Posgrado|FP|"
    r"Laurea(?: Magistrale| Triennale)?|Diploma di [^\W\d]+|Dottorato|Mestrado|Bacharelado|Doutorado|Ensino Médio|HBO|WO|VWO|HAVO|MBO|Propedeuse"
    r")(?![\w])(?:\s*\((?:Hons\.?|Honours)\))?",
)  # fmt: skip
SCHOOL = re.compile(
    r"\b(?:university|universität|universitat|université|universite|universidad|universidade|università|universita|universiteit|univ\.?|college|institute|institut|instituto|istituto|polytechnic|politécnica|politecnico|"
    r"polytechnique|academy|akademie|académie|academia|school|schule|école|ecole|escuela|escola|scuola|hochschule|fachhochschule|gymnasium|lycée|lycee|liceo|colegio|collège|realschule|gesamtschule|hauptschule|grundschule|berufsschule|"
    r"oberschule|berufskolleg|faculty|faculté|facultad|conservatory|conservatoire|seminary|iut|insa|ies|eth|epfl|mit|ucla|caltech|usc|nyu|lmu|rwth|kit|tum|tu|fh|th|hs|haw|dhbw|fom|iu|fu|hu|wu|uc|iit|nit|bits|iim|eht|hec|essec|escp|insead|esade|iese|"
    r"sorbonne|sciences po|centrale|supélec|mines|ens|upc|upm|uab|uam|ucm|uned|bootcamp|general assembly|le wagon|ironhack|ihk|hwk|vhs|volkshochschule|berufsakademie|duale hochschule|campus|high|prep|kolleg|hogeschool|lyceum|stanford|harvard|oxford|cambridge|yale|princeton|berkeley|georgia tech|virginia tech|coursera|udacity)\b"
    r"|\w{4,}(?:gymnasium|hochschule|universität|schule|kolleg|akademie|institut)\b",
    re.IGNORECASE,
)  # fmt: skip
SCORE = re.compile(
    r"(?:\b(?:cumulative |overall |major )?(?:GPA|C\.?GPA|G\.P\.A\.?|grade|score|(?:abschluss|end|gesamt)?note|notendurchschnitt|durchschnitt|moyenne|nota(?: media)?|promedio|percentage|media|abschlussnote|voto)\s*[:=]?\s*(?:of |de )?(?P<score>\d{1,3}(?:[.,]\d{1,2})?\s?(?:/\s?\d{1,3}(?:[.,]\d{1,2})?|%)?)"
    r"|(?P<before>\d[.,]\d{1,2}\s?(?:/\s?\d(?:[.,]\d{1,2})?)?)\s*(?:C?GPA)\b|(?P<honours>\b(?:summa|magna)? ?cum laude\b|\bfirst[- ]class honou?rs\b|\bmention (?:très bien|assez bien|bien)\b|\bwith (?:high )?(?:distinction|honors)\b|\b2:[12]\b|\bupper second\b|\bsehr gut\b|\bsobresaliente\b|\bmatrícula de honor\b))",
    re.IGNORECASE,
)  # fmt: skip
PREFIXED = re.compile(
    r"(?<=[\w.)])\s+(?=(?:The )?(?:University of|Universidad|Universidade|Université|Universität|Università|Universiteit|Politecnico|Polytechnic of|École|Ecole|Hochschule|Technische (?:Universität|Hochschule)|Fachhochschule|Institut)\b)"
)
"""before a name of a school that begins with its kind"""


def degree_in(text: str) -> re.Match[str] | None:
    """The first degree in a text; in capitals, too."""
    found = DEGREE.search(text)
    if found is not None or not any(word.isupper() and len(word) > 3 for word in text.split()):
        return found
    return DEGREE.search(
        re.sub(
            r"[^\W\d_]{4,}(?:['’]S\b)?",
            lambda one: one.group().capitalize() if one.group().isupper() else one.group(),
            text,
        )
    )
