"""Languages that people speak, in seven of them, and how well they say that they do."""

from __future__ import annotations

import re

_LANGUAGES_SAID = """
english german french spanish italian portuguese dutch russian polish turkish arabic chinese mandarin cantonese
japanese korean hindi urdu bengali punjabi tamil telugu marathi gujarati malayalam kannada swedish norwegian danish
finnish icelandic greek czech slovak hungarian romanian bulgarian croatian serbian slovenian ukrainian hebrew
persian farsi vietnamese thai indonesian malay tagalog filipino swahili afrikaans catalan basque galician latin
welsh irish gaelic esperanto estonian latvian lithuanian albanian macedonian bosnian armenian georgian nepali
sinhala amharic yoruba igbo hausa zulu asl luxembourgish azerbaijani kazakh uzbek mongolian burmese khmer lao pashto
kurdish somali wolof creole brazilian deutsch englisch franzosisch spanisch italienisch portugiesisch niederlandisch
russisch polnisch turkisch arabisch chinesisch japanisch koreanisch schwedisch norwegisch danisch finnisch
griechisch tschechisch slowakisch ungarisch rumanisch bulgarisch kroatisch serbisch ukrainisch hebraisch persisch
latein lateinisch vietnamesisch indonesisch katalanisch slowenisch bosnisch albanisch kurdisch francais francaise
anglais allemand espagnol italien portugais neerlandais russe polonais turc arabe chinois japonais coreen suedois
norvegien danois finnois grec tcheque hongrois roumain bulgare croate serbe ukrainien hebreu persan vietnamien
breton espanol castellano ingles aleman frances italiano portugues holandes neerlandes ruso polaco turco chino
japones coreano sueco noruego danes finlandes griego checo hungaro rumano euskera gallego valenciano ucraniano
hebreo inglese tedesco francese spagnolo portoghese russo cinese giapponese arabo alemao espanhol engels duits frans
spaans nederlands italiaans pools
"""
LANGUAGES = frozenset(_LANGUAGES_SAID.split())
FLUENCY = re.compile(
    r"\b(?:native|mother tongue|bilingual|fluent|fluently|proficient|proficiency|professional|working|advanced|upper|intermediate|conversational|basic|beginner|elementary|limited|full|"
    r"[abc][12][+]?|muttersprach\w*|fließend\w*|fliessend\w*|verhandlungssicher\w*|sehr gut\w*|gut\w*|grundkenntnisse|grundlegend\w*|konversationssicher|schulkenntnisse|erweiterte|"
    r"langue maternelle|maternelle|maternel|courant|bilingue|professionnel|intermédiaire|notions|débutant|scolaire|avancé|lu|parlé|technique|"
    r"nativo|nativa|lengua materna|materna|fluido|avanzado|alto|medio|intermedio|básico|bajo|bilingüe|profesional|madrelingua|fluente|ottimo|buono|moedertaal|vloeiend|"
    r"toefl|ielts|toeic|dele|delf|dalf|goethe|excellent|good|fair|spoken|written|kompetent|wort und schrift)\b",
    re.IGNORECASE,
)  # fmt: skip
