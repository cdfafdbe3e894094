//! Code in a text: fenced blocks and inline spans, blanked so that nothing in them is read.

const FENCE: &str = "```";

/// The text with its code replaced by blanks, byte for byte; line ends stay.
///
/// A fence opens with three backticks at the start of a line, possibly after blanks, and closes at the next
/// such line or at the end of the text. An inline span lies between two runs of backticks of one length on
/// one line; a run without its match is plain text.
pub fn blank_code(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut in_fence = false;
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with(FENCE);
        if in_fence && is_fence {
            let (fence, rest) = split_fence(line);
            push_blanks(&mut blanked, fence);
            push_inline(&mut blanked, rest);
            in_fence = false;
        } else if in_fence || is_fence {
            push_blanks(&mut blanked, line);
            in_fence = true;
        } else {
            push_inline(&mut blanked, line);
        }
    }
    blanked
}

/// A line that begins with a fence, cut behind its run of backticks.
fn split_fence(line: &str) -> (&str, &str) {
    let indent = line.len() - line.trim_start().len();
    line.split_at(indent + run_length(&line[indent..]))
}

fn run_length(text: &str) -> usize {
    text.bytes().take_while(|byte| *byte == b'`').count()
}

fn push_inline(blanked: &mut String, line: &str) {
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let run = run_length(&rest[start..]);
        let inner = start + run;
        blanked.push_str(&rest[..start]);
        let end = match closing_run(&rest[inner..], run) {
            Some(length) => {
                let end = inner + length + run;
                push_blanks(blanked, &rest[start..end]);
                end
            }
            None => {
                blanked.push_str(&rest[start..inner]);
                inner
            }
        };
        rest = &rest[end..];
    }
    blanked.push_str(rest);
}

/// How many bytes lie before the first run of exactly `run` backticks.
fn closing_run(text: &str, run: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(offset) = text[at..].find('`') {
        let found = run_length(&text[at + offset..]);
        if found == run {
            return Some(at + offset);
        }
        at += offset + found;
    }
    None
}

fn push_blanks(blanked: &mut String, code: &str) {
    blanked.extend(code.bytes().map(|byte| match byte {
        b'\n' | b'\r' => char::from(byte),
        _ => ' ',
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_fences_become_blanks_of_their_length() {
        for (text, blanked) in [
            ("use `@a` now", "use      now"),
            ("``@a ` b`` c", "           c"),
            ("one ` tick @a", "one ` tick @a"),
            ("a ` b\nc ` @d", "a ` b\nc ` @d"),
            ("x\n```rs\n@a\n```\ny", "x\n     \n  \n   \ny"),
            ("  ```\n@a\n  ```\n@b", "     \n  \n     \n@b"),
            ("```\n@a", "   \n  "),
            ("```@a``` @b\n@c", "           \n  "),
            ("```\n@a\n```` @b", "   \n  \n     @b"),
            ("mid ```@a``` @b", "mid          @b"),
            ("`é`", "    "),
        ] {
            assert_eq!(blank_code(text), blanked, "{text:?}");
        }
    }
}
