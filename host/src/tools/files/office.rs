//! What a document of Word or a sheet of Excel says, as plain text: paragraphs, and rows with tabs between their cells.

use super::archive::member;

/// The most sheets that are looked for.
const MOST_SHEETS: usize = 100;

/// Returns the text of a document in `docx` or `xlsx`. None if it is none.
pub(super) fn text(archive: &[u8]) -> Option<String> {
    document(archive).or_else(|| workbook(archive))
}

/// One piece of XML.
enum Piece<'a> {
    /// What stands between `<` and `>`.
    Tag(&'a str),
    /// What stands between tags.
    Text(&'a str),
}

/// Parts XML into its pieces. It does not have to be right.
fn pieces(xml: &str) -> impl Iterator<Item = Piece<'_>> {
    xml.split('<').enumerate().flat_map(|(number, part)| {
        let (tag, text) = match part.split_once('>') {
            Some((tag, text)) if number > 0 => (Some(Piece::Tag(tag)), text),
            _ => (None, part),
        };
        [tag, (!text.is_empty()).then_some(Piece::Text(text))].into_iter().flatten()
    })
}

/// Returns the name of a tag.
fn name(tag: &str) -> &str {
    tag.split([' ', '\n', '\r', '\t', '/']).find(|word| !word.is_empty()).unwrap_or("")
}

/// Returns an attribute of a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// Appends text without what XML writes for the characters that it needs itself.
fn push(text: &mut String, part: &str) {
    let mut rest = part;
    while let Some((before, behind)) = rest.split_once('&') {
        text.push_str(before);
        let Some((entity, behind)) = behind.split_once(';') else {
            rest = behind;
            break;
        };
        let code = entity.strip_prefix("#x").map(|digits| u32::from_str_radix(digits, 16));
        let code = code.or_else(|| entity.strip_prefix('#').map(str::parse));
        let character = match entity {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => code.and_then(Result::ok).and_then(char::from_u32),
        };
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = behind;
    }
    text.push_str(rest);
}

fn xml(archive: &[u8], name: &str) -> Option<String> {
    member(archive, name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn document(archive: &[u8]) -> Option<String> {
    let (mut text, mut inside) = (String::new(), false);
    for piece in pieces(&xml(archive, "word/document.xml")?) {
        match piece {
            Piece::Text(part) if inside => push(&mut text, part),
            Piece::Text(_) => {}
            Piece::Tag("/w:p") => text.push('\n'),
            Piece::Tag("/w:t") => inside = false,
            Piece::Tag(tag) => match name(tag) {
                "w:t" => inside = !tag.ends_with('/'),
                "w:tab" => text.push('\t'),
                "w:br" | "w:cr" => text.push('\n'),
                _ => {}
            },
        }
    }
    Some(text)
}

fn workbook(archive: &[u8]) -> Option<String> {
    let book = xml(archive, "xl/workbook.xml")?;
    let names: Vec<&str> = pieces(&book)
        .filter_map(|piece| match piece {
            Piece::Tag(tag) if name(tag) == "sheet" => attribute(tag, "name"),
            _ => None,
        })
        .collect();
    let shared = xml(archive, "xl/sharedStrings.xml").map_or_else(Vec::new, |xml| shared(&xml));
    let mut text = String::new();
    for number in 1..=MOST_SHEETS {
        let Some(sheet) = xml(archive, &format!("xl/worksheets/sheet{number}.xml")) else { break };
        text.push_str("# sheet ");
        push(&mut text, names.get(number - 1).unwrap_or(&"?"));
        text.push('\n');
        rows(&mut text, &sheet, &shared);
    }
    Some(text)
}

/// Returns the texts that cells share, in their order.
fn shared(xml: &str) -> Vec<String> {
    let (mut texts, mut text, mut inside) = (Vec::new(), String::new(), false);
    for piece in pieces(xml) {
        match piece {
            Piece::Text(part) if inside => push(&mut text, part),
            Piece::Text(_) => {}
            Piece::Tag("/si" | "si/") => texts.push(std::mem::take(&mut text)),
            Piece::Tag(tag) => inside = name(tag) == "t" && !tag.starts_with('/') && !tag.ends_with('/'),
        }
    }
    texts
}

fn rows(text: &mut String, sheet: &str, shared: &[String]) {
    let (mut column, mut wanted) = (0_usize, 0_usize);
    let (mut is_shared, mut inside) = (false, false);
    for piece in pieces(sheet) {
        match piece {
            Piece::Text(part) if inside => {
                text.extend(std::iter::repeat_n('\t', wanted.saturating_sub(column)));
                column = column.max(wanted);
                let index = part.trim().parse::<usize>().ok().filter(|_| is_shared);
                match index.and_then(|index| shared.get(index)) {
                    Some(value) => text.push_str(&value.replace(['\n', '\t'], " ")),
                    None => push(text, &part.replace(['\n', '\t'], " ")),
                }
            }
            Piece::Text(_) => {}
            Piece::Tag("/row") => {
                text.push('\n');
                column = 0;
            }
            Piece::Tag(tag) if name(tag) == "c" && !tag.starts_with('/') => {
                is_shared = attribute(tag, "t") == Some("s");
                wanted = attribute(tag, "r").map_or(column, number_of);
            }
            Piece::Tag(tag) => inside = matches!(tag, "v" | "t") || tag.starts_with("t "),
        }
    }
}

/// Returns the number of a cell's column, from 0: `A1` is 0, `AB7` is 27. No sheet has more than `XFD`.
fn number_of(cell: &str) -> usize {
    let letters = cell.bytes().take_while(u8::is_ascii_uppercase).take(3);
    letters.fold(0, |number, letter| number * 26 + usize::from(letter - b'A') + 1).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::super::archive::tests::packed;
    use super::*;

    #[test]
    fn a_document_is_its_paragraphs() {
        let xml = "<?xml version=\"1.0\"?><w:document><w:body><w:p><w:pPr><w:tabs/></w:pPr><w:r><w:t>one &amp; </w:t></w:r>\
                   <w:r><w:t xml:space=\"preserve\">t&#119;o</w:t><w:tab/><w:t>&lt;3</w:t><w:br/></w:r></w:p>\n\
                   <w:p/><w:p><w:t/><w:r>no text</w:r></w:p></w:body></w:document>";
        let archive = packed(&[("[Content_Types].xml", "x"), ("word/document.xml", xml)]);
        assert_eq!(text(&archive).as_deref(), Some("one & two\t<3\n\n\n"));
    }

    #[test]
    fn a_workbook_is_its_rows() {
        let book = "<workbook><sheets><sheet name=\"In &amp; out\" sheetId=\"1\"/></sheets></workbook>";
        let strings = "<sst><si><t>name</t></si><si><r><t>bold</t></r><r><t xml:space=\"preserve\"> one</t></r></si></sst>";
        let sheet = "<worksheet><sheetData><row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"C1\" s=\"2\"><v>1.5</v></c></row>\
                     <row r=\"2\"><c r=\"B2\" t=\"s\"><v>1</v></c><c r=\"C2\" t=\"inlineStr\"><is><t>in</t></is></c>\
                     <c r=\"D2\"><f>A1</f><v>7</v></c><c r=\"E2\"/></row></sheetData></worksheet>";
        let files = [
            ("xl/workbook.xml", book),
            ("xl/sharedStrings.xml", strings),
            ("xl/worksheets/sheet1.xml", sheet),
        ];
        let expected = "# sheet In & out\nname\t\t1.5\n\tbold one\tin\t7\n";
        assert_eq!(text(&packed(&files)).as_deref(), Some(expected));
    }

    #[test]
    fn other_archives_and_what_is_none_have_no_text() {
        assert_eq!(text(&packed(&[("a", "b")])), None);
        assert_eq!(text(b"PK and no more"), None);
        assert_eq!(["A1", "Z9", "AA1", "AB7", "1"].map(number_of), [0, 25, 26, 27, 0]);
    }
}
