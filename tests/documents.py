"""Documents of many kinds, made here: as bytes, by the end of their names."""

import io
import json
import zipfile

import openpyxl
import pptx

HANDBOOK = (
    "# Handbook\n\nWelcome to all.\n\n## Leave\n\nLeave is asked for in writing.\n\n### Parental leave\n\n"
    "Parental leave is approved by the head of department. It lasts a year.\n\n## Pay\n\nPay comes on the 25th.\n"
)


def pdf(*pages: str, locked: bool = False) -> bytes:
    """Return a PDF of pages, a line each; locked: it asks for a password."""
    kids = " ".join(f"{4 + 2 * place} 0 R" for place in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for place, text in enumerate(pages):
        drawn = f"BT /F1 11 Tf 40 700 Td ({text}) Tj ET" if text else "0 0 m 9 9 l S"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 2000 800] /Contents {5 + 2 * place} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    trailer = f"/Root 1 0 R /Size {len(objects) + 1}"
    if locked:
        secret = "00" * 32
        trailer += f" /Encrypt << /Filter /Standard /V 1 /R 2 /O <{secret}> /U <{secret}> /P -4 >> /ID [<00> <00>]"
    written, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n{content}\nendobj\n"
    rows = "".join(f"{place:010d} 00000 n \n" for place in places)
    table = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}"
    return f"{written}{table}trailer\n<< {trailer} >>\nstartxref\n{len(written)}\n%%EOF\n".encode("latin-1")


def zipped(**files: str) -> bytes:
    """Return a zip of files by name."""
    with zipfile.ZipFile(made := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def docx(heading: str, text: str) -> bytes:
    """Return a Word document of a heading and a paragraph."""
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = (
        f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>{heading}</w:t></w:r></w:p>'
        f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
    )
    kinds = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    style = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    return zipped(
        **{
            "[Content_Types].xml": f'<Types xmlns="{types}"><Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
            f'ContentType="{kinds}.document.main+xml"/><Override PartName="/word/styles.xml" '
            f'ContentType="{kinds}.styles+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{office}/officeDocument" '
            'Target="word/document.xml"/></Relationships>',
            "word/_rels/document.xml.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" '
            f'Type="{office}/styles" Target="styles.xml"/></Relationships>',
            "word/styles.xml": f"<w:styles {space}>{style}</w:styles>",
            "word/document.xml": f"<w:document {space}><w:body>{body}</w:body></w:document>",
        }
    )


def epub(heading: str, text: str) -> bytes:
    """Return a book of one chapter."""
    names = "urn:oasis:names:tc:opendocument:xmlns:container"
    return zipped(
        **{
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": f'<container xmlns="{names}"><rootfiles><rootfile full-path="book.opf"/>'
            "</rootfiles></container>",
            "book.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata/><manifest><item id="c" '
            'href="c.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine>'
            "</package>",
            "c.xhtml": f"<html><body><h1>{heading}</h1><p>{text}</p></body></html>",
        }
    )


def xlsx(name: str, *rows: tuple[object, ...]) -> bytes:
    """Return a workbook of one sheet."""
    book = openpyxl.Workbook()
    book.active.title = name
    for row in rows:
        book.active.append(row)
    book.save(made := io.BytesIO())
    return made.getvalue()


def slides(title: str, text: str) -> bytes:
    """Return a presentation of one slide."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = title, text
    deck.save(made := io.BytesIO())
    return made.getvalue()


def notebook(text: str) -> bytes:
    """Return a notebook of one cell of Markdown."""
    cell = {"cell_type": "markdown", "metadata": {}, "source": [text]}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
