//! Tables and times for people.

use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

/// The largest time that has an RFC 3339 form: the end of the year 9999.
const MAX_TIME_MS: u64 = 253_402_300_799_999;

/// Rows under a heading, each column as wide as its widest cell.
pub(crate) struct Table {
    /// Whether a column holds numbers, which stand at its right edge.
    numeric: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; a heading that starts with `#` is that of numbers.
    pub(crate) fn new(headings: &[&str]) -> Table {
        let numeric = headings.iter().map(|heading| heading.starts_with('#')).collect();
        let names = headings.iter().map(|heading| heading.trim_start_matches('#').to_uppercase());
        Table { numeric, rows: vec![names.collect()] }
    }

    /// Adds a row; cells that are not given stay empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Writes it.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.numeric.len()).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate().take(widths.len()) {
                let width = widths[column];
                let padded = match self.numeric[column] {
                    true => format!("{cell:>width$}  "),
                    false => format!("{cell:<width$}  "),
                };
                line.push_str(&padded);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number, or a dash for one that is not known.
pub(crate) fn known(number: Option<u64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// `1 round`, `2 rounds`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Milliseconds since 1970 as an RFC 3339 time in UTC.
pub(crate) fn rfc3339(time_ms: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(time_ms.min(MAX_TIME_MS));
    humantime::format_rfc3339_millis(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_at_the_right_and_words_at_the_left() {
        let mut table = Table::new(&["turn", "#rounds"]);
        table.row(["turn_1".to_owned(), "4".to_owned()]);
        let mut out = Vec::new();
        table.write(&mut out).expect("memory");
        assert_eq!(String::from_utf8_lossy(&out), "TURN    ROUNDS\nturn_1       4\n");
    }

    #[test]
    fn a_time_beyond_the_calendar_does_not_panic() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
