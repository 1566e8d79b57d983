"""What is read of documents: in which order, what of it can be seen, what is told of the rest."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from io import BytesIO
from typing import Any

import docx
import pytest
from docx import oxml
from docx.enum.text import WD_COLOR_INDEX
from docx.shared import Pt, RGBColor
from reportlab.lib.pagesizes import A4  # type: ignore[import-untyped]  # it has no types
from reportlab.lib.utils import ImageReader  # type: ignore[import-untyped]  # the same
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]  # the same

from windlass.apps.resumes.extraction.extract import extract
from windlass.apps.resumes.extraction.extracted import Extracted
from windlass.apps.resumes.extraction.pdfium import pdf
from windlass.apps.resumes.extraction.refused import DocumentRefused

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def drawn(draw: Callable[[Any], None], **how: Any) -> bytes:
    held = BytesIO()
    canvas: Any = Canvas(held, pagesize=A4, **how)
    canvas.setFont("Helvetica", 11)
    canvas.drawString(60, 780, "Ada Visible, engineer")
    draw(canvas)
    canvas.save()
    return held.getvalue()


def saved(document: Any) -> bytes:
    held = BytesIO()
    document.save(held)
    return held.getvalue()


def picture_of(data: bytes, scale: float = 3.0) -> Any:
    document = pdf.PdfDocument(data)
    picture = document[0].render(scale=scale).to_pil()
    document.close()
    return picture


def read(data: bytes, media_type: str = PDF) -> Extracted:
    """What is read, by way of the form in which a step keeps it."""
    return Extracted.of(extract(data, media_type).as_json())


def columns(canvas: Any) -> None:
    """Left and right are drawn in turns, with lines at the same height."""
    left = ["SKILLS", "Python and Rust", "Carpentry", "LANGUAGES", "English", "Finnish"]
    right = [
        "EXPERIENCE",
        "Engineer at Northwind",
        "Built bridges that still stand today",
        "EDUCATION",
        "University of Oulu",
        "Thesis on drawbridges",
    ]
    for at, (one, other) in enumerate(zip(left, right, strict=True)):
        canvas.drawString(60, 740 - 16 * at, one)
        canvas.drawString(230, 740 - 16 * at, other)


def test_columns_are_read_one_after_the_other() -> None:
    found = read(drawn(columns))
    assert found.facts.columns == 2
    text = found.text
    assert text.index("Finnish") < text.index("EXPERIENCE") or text.index("drawbridges") < text.index("SKILLS")
    assert "Carpentry\n" in text


def test_dates_at_the_right_stay_beside_what_they_date() -> None:
    def draw(canvas: Any) -> None:
        for at, title in enumerate(("Engineer", "Joiner", "Baker", "Sailor", "Cook")):
            canvas.drawString(60, 740 - 40 * at, title)
            canvas.drawRightString(530, 740 - 40 * at, f"20{10 + at} - 20{11 + at}")
            canvas.drawString(60, 726 - 40 * at, "Did many things there, all of them with care and on time")

    found = read(drawn(draw))
    assert "Joiner\t2011 - 2012" in found.text
    assert found.facts.columns == 1


def white(canvas: Any) -> None:
    canvas.setFillColorRGB(1, 1, 1)
    canvas.drawString(60, 700, "secret words")


def nearly_white(canvas: Any) -> None:
    canvas.setFillColorRGB(0.98, 0.98, 0.97)
    canvas.drawString(60, 700, "secret words")


def tiny(canvas: Any) -> None:
    canvas.setFont("Helvetica", 1)
    canvas.drawString(60, 700, "secret words")


def tiny_by_scale(canvas: Any) -> None:
    canvas.scale(0.1, 0.1)
    canvas.drawString(600, 7000, "secret words")


def off_page(canvas: Any) -> None:
    canvas.drawString(900, 700, "secret words")


def below_page(canvas: Any) -> None:
    canvas.drawString(60, -50, "secret words")


def invisible(canvas: Any) -> None:
    text = canvas.beginText(60, 700)
    text.setTextRenderMode(3)
    text.textOut("secret words")
    canvas.drawText(text)


def transparent(canvas: Any) -> None:
    canvas.setFillAlpha(0.01)
    canvas.drawString(60, 700, "secret words")


def behind_a_shape(canvas: Any) -> None:
    canvas.drawString(60, 700, "secret words")
    canvas.setFillColorRGB(0.2, 0.3, 0.6)
    canvas.rect(50, 690, 200, 30, stroke=0, fill=1)


def behind_a_picture(canvas: Any) -> None:
    canvas.drawString(60, 700, "secret words")
    canvas.drawImage(ImageReader(picture_of(drawn(columns), 0.4)), 50, 690, 200, 30)


def dark_on_dark(canvas: Any) -> None:
    canvas.setFillColorRGB(0, 0, 0)
    canvas.rect(50, 690, 200, 30, stroke=0, fill=1)
    canvas.drawString(60, 700, "secret words")


def clipped_away(canvas: Any) -> None:
    path = canvas.beginPath()
    path.rect(300, 300, 5, 5)
    canvas.saveState()
    canvas.clipPath(path, stroke=0, fill=0)
    canvas.drawString(60, 700, "secret words")
    canvas.restoreState()


def white_under_black(canvas: Any) -> None:
    canvas.setFillColorRGB(1, 1, 1)
    canvas.drawString(60, 700, "secret words")
    canvas.setFillColorRGB(0, 0, 0)
    canvas.drawString(60, 700, "seen by all who look")


HIDDEN = [
    white,
    nearly_white,
    tiny,
    tiny_by_scale,
    off_page,
    below_page,
    invisible,
    transparent,
    behind_a_shape,
    behind_a_picture,
    dark_on_dark,
    clipped_away,
    white_under_black,
]


@pytest.mark.parametrize("hide", HIDDEN)
def test_text_of_a_pdf_that_cannot_be_seen_is_left_out_and_reported(hide: Callable[[Any], None]) -> None:
    found = read(drawn(hide))
    assert "secret" not in found.text
    assert "Ada Visible" in found.text
    assert found.facts.hidden >= len("secret words") - 1
    assert any("secret" in one.beginning and one.page == 1 and one.why for one in found.hidden)


def test_white_text_on_a_dark_ground_is_seen() -> None:
    def draw(canvas: Any) -> None:
        canvas.setFillColorRGB(0.1, 0.2, 0.3)
        canvas.rect(40, 660, 250, 80, stroke=0, fill=1)
        canvas.setFillColorRGB(1, 1, 1)
        canvas.drawString(60, 700, "seen words")

    found = read(drawn(draw))
    assert "seen words" in found.text
    assert found.facts.hidden == 0


def test_letters_set_apart_and_ligatures_are_words() -> None:
    def draw(canvas: Any) -> None:
        text = canvas.beginText(60, 700)
        text.setCharSpace(5)
        text.textOut("EXPERIENCE")
        canvas.drawText(text)

    assert "EXPERIENCE" in read(drawn(draw)).text


def test_a_turned_page_is_read_as_it_is_looked_at() -> None:
    document = pdf.PdfDocument(drawn(columns))
    document[0].set_rotation(90)
    held = BytesIO()
    document.save(held)
    document.close()
    found = read(held.getvalue())
    assert "Ada Visible, engineer" in found.text
    assert found.pages[0].width > found.pages[0].height


@pytest.mark.timeout(60)
def test_pages_that_are_pictures_are_read_by_tesseract_or_reported() -> None:
    held = BytesIO()
    picture_of(drawn(columns)).save(held, "PDF", resolution=216)
    found = read(held.getvalue())
    assert found.facts.scanned
    if shutil.which("tesseract") is None:
        assert "Tesseract is not installed" in " ".join(found.facts.notes)
        return
    assert found.facts.recognised
    assert "Ada Visible" in found.text
    assert "Engineer at Northwind" in found.text


def test_the_invisible_text_of_a_scan_is_not_trusted() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawImage(ImageReader(picture_of(drawn(columns), 2)), 0, 0, *A4)
        text = canvas.beginText(60, 700)
        text.setTextRenderMode(3)
        text.textOut("Chief Wizard of everything")
        canvas.drawText(text)

    found = read(drawn(draw))
    assert "Wizard" not in found.text
    assert found.facts.hidden > 0


def a_document(fill: Callable[[Any], None]) -> Extracted:
    document = docx.Document()
    document.add_paragraph("Ada Visible")
    fill(document)
    return read(saved(document), DOCX)


def test_a_docx_is_read_with_its_tables_headers_footers_and_links_in_order() -> None:
    def fill(document: Any) -> None:
        document.sections[0].header.paragraphs[0].text = "ada@example.com"
        document.sections[0].footer.paragraphs[0].text = "Page of Ada"
        table = document.add_table(rows=2, cols=2)
        for row, (when, what) in zip(table.rows, (("2019 – 2021", "Engineer"), ("2017 – 2019", "Joiner")), strict=True):
            row.cells[0].text, row.cells[1].text = when, what
        document.add_paragraph("built bridges", style="List Bullet")
        document.part.relate_to(
            "https://example.com/ada",
            "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink",
            is_external=True,
        )

    found = a_document(fill)
    lines = found.text.split("\n")
    assert lines == [
        "ada@example.com",
        "Ada Visible",
        "2019 – 2021\tEngineer",
        "2017 – 2019\tJoiner",
        "• built bridges",
        "Page of Ada",
    ]
    assert found.facts.tables == 1
    assert found.facts.in_margins
    assert found.links == ("https://example.com/ada",)


def test_a_table_that_is_a_page_of_two_columns_is_read_column_by_column() -> None:
    def fill(document: Any) -> None:
        left, right = document.add_table(rows=1, cols=2).rows[0].cells
        for line in ("Skills", "Python", "Rust", "Languages", "English", "Finnish"):
            left.add_paragraph(line)
        for line in ("Experience", "Engineer", "Northwind", "2019 – 2021", "Built bridges", "Repaired them"):
            right.add_paragraph(line)

    found = a_document(fill)
    assert found.facts.columns == 2
    assert found.text.index("Finnish") < found.text.index("Experience")


def vanished(run: Any) -> None:
    run.font.hidden = True


def small(run: Any) -> None:
    run.font.size = Pt(1)


def pale(run: Any) -> None:
    run.font.color.rgb = RGBColor(255, 255, 255)


@pytest.mark.parametrize("hide", [vanished, small, pale])
def test_text_of_a_docx_that_cannot_be_seen_is_left_out_and_reported(hide: Callable[[Any], None]) -> None:
    found = a_document(lambda document: hide(document.add_paragraph().add_run("secret words")))
    assert "secret" not in found.text
    assert found.facts.hidden == len("secret words")
    assert found.hidden[0].beginning == "secret words"


def test_white_text_of_a_docx_on_a_dark_ground_is_seen() -> None:
    def fill(document: Any) -> None:
        run = document.add_paragraph().add_run("seen words")
        run.font.color.rgb = RGBColor(255, 255, 255)
        run.font.highlight_color = WD_COLOR_INDEX.DARK_BLUE

    assert "seen words" in a_document(fill).text


def test_text_boxes_of_a_docx_are_read_once() -> None:
    def fill(document: Any) -> None:
        run = document.add_paragraph("before").runs[0]
        made: Any = oxml
        box, paragraph, inner, text = (made.OxmlElement(name) for name in ("w:txbxContent", "w:p", "w:r", "w:t"))
        text.text = "in a box"
        inner.append(text)
        paragraph.append(inner)
        box.append(paragraph)
        run._r.append(box)

    assert a_document(fill).text.count("in a box") == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1"])
def test_text_files_are_read_in_any_usual_encoding(encoding: str) -> None:
    said = "Jürgen Weiß\nBüroleiter für größere Vorhaben\n  - Köln und Tübingen, ça va, año\n" * 3
    found = read(said.encode(encoding), "text/plain")
    assert found.text.startswith("Jürgen Weiß\nBüroleiter für größere Vorhaben\n- Köln")
    assert "año" in found.text


def test_text_in_letters_that_are_not_of_western_europe_is_read() -> None:
    said = "Иван Петров\nИнженер-программист\nМосква\nОпыт работы: десять лет в разработке программ\n" * 4
    assert "Инженер" in read(said.encode("cp1251"), "text/plain").text


def test_gaps_of_a_text_file_are_tabs_and_form_feeds_are_pages() -> None:
    found = read(b"Engineer        2019 - 2021\nNorthwind\n\x0cJoiner\t2017", "text/plain")
    assert [line.text for page in found.pages for line in page.lines] == [
        "Engineer\t2019 - 2021",
        "Northwind",
        "Joiner\t2017",
    ]
    assert found.facts.pages == 2


@pytest.mark.parametrize(
    ("data", "media_type", "reason"),
    [
        (b"", PDF, "empty"),
        (b"  \n ", "text/plain", "empty"),
        (b"%PDF-1.7 and then nothing", PDF, "broken PDF"),
        (b"not a pdf at all", PDF, "is none"),
        (b"PK\x03\x04 rest of nothing", DOCX, "broken DOCX"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), DOCX, "old Word document"),
        (b"{\\rtf1 hello}", "text/plain", "RTF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "image/png", "picture"),
        (b"<!DOCTYPE html><p>x", "text/html", "markup"),
        (bytes(range(256)) * 8, "text/plain", "neither"),
    ],
)
def test_what_is_no_document_is_refused_with_a_reason(data: bytes, media_type: str, reason: str) -> None:
    with pytest.raises(DocumentRefused, match=reason):
        extract(data, media_type)


def test_what_a_file_is_decides_and_not_what_it_is_called() -> None:
    assert extract(drawn(columns), "text/plain").facts.kind == "pdf"
    assert extract(saved(docx.Document(BytesIO(saved_with_text()))), PDF).facts.kind == "docx"


def saved_with_text() -> bytes:
    document = docx.Document()
    document.add_paragraph("Ada Visible")
    return saved(document)
