//! Fields between single-byte delimiters, a fixed number of them: Criteo, and any such format.

use super::{Guard, LineVisitor, wrong_columns};
use crate::bad::Fault;
use crate::fields::{Cells, SplitView};
use crate::scan::Index;

#[derive(Clone, Debug)]
pub(crate) struct Split {
    delimiter: u8,
    pub(crate) columns: Vec<String>,
    /// Whether a line may leave the first column out.
    may_lack_first: bool,
}

impl Split {
    pub(crate) fn new(delimiter: u8, columns: Vec<String>) -> Self {
        Self {
            delimiter,
            columns,
            may_lack_first: false,
        }
    }

    pub(crate) fn criteo(has_label: Option<bool>, uses_label: bool) -> Self {
        let label = (has_label != Some(false)).then(|| "label".to_owned());
        let integers = (1..=13).map(|number| format!("I{number}"));
        let categories = (1..=26).map(|number| format!("C{number}"));
        Self {
            delimiter: b'\t',
            columns: label.into_iter().chain(integers).chain(categories).collect(),
            may_lack_first: has_label.is_none() && !uses_label,
        }
    }

    /// First column of a line that has `found` of them.
    #[inline]
    fn first_column(&self, found: usize) -> Option<u32> {
        if found == self.columns.len() {
            Some(0)
        } else if self.may_lack_first && found + 1 == self.columns.len() {
            Some(1)
        } else {
            None
        }
    }

    fn expected(&self) -> String {
        let full = self.columns.len();
        if self.may_lack_first {
            format!("{} or {full}", full - 1)
        } else {
            full.to_string()
        }
    }

    pub(crate) fn cells(&self, line: &[u8], cells: &mut Cells) -> Result<(), Fault> {
        let found = memchr::memchr_iter(self.delimiter, line).count() + 1;
        let Some(first) = self.first_column(found) else {
            return Err(wrong_columns(line.len(), &self.expected(), found));
        };
        let mut start = 0;
        let ends = memchr::memchr_iter(self.delimiter, line).chain([line.len()]);
        for (column, end) in (first..).zip(ends) {
            cells.push_line(column, start, end);
            start = end + 1;
        }
        Ok(())
    }

    pub(crate) fn visit_block<V: LineVisitor>(
        &self,
        block: &[u8],
        guard: &Guard,
        index: &mut Index,
        visitor: &mut V,
    ) -> u32 {
        index.fill(block, self.delimiter);
        if block.last().is_some_and(|&last| last != b'\n') {
            index.line_ends.push(index.marks.len() as u32);
            index.marks.push(block.len() as u32);
        }
        let mut before = 0;
        let mut start = 0u32;
        for (number, &last) in index.line_ends.iter().enumerate() {
            let (number, last) = (number as u32, last as usize);
            let line_end = index.marks[last];
            let mut end = line_end;
            if end > start && block[end as usize - 1] == b'\r' {
                end -= 1;
                // The last field ends here; put back below, since the next line starts behind the mark.
                index.marks[last] = end;
            }
            let found = last - before;
            if end > start || found > 1 {
                let marks = &index.marks[before..=last];
                let line = &block[start as usize..end as usize];
                match (guard.check(line), self.first_column(found)) {
                    (Ok(()), Some(first_column)) => {
                        let view = SplitView {
                            block,
                            marks,
                            first_column,
                        };
                        visitor.line(&view, (line_end + 1).min(block.len() as u32), number);
                    }
                    (Ok(()), None) => {
                        let at = marks
                            .get(self.columns.len())
                            .map_or(line.len(), |&mark| (mark - start) as usize);
                        visitor.fault(wrong_columns(at, &self.expected(), found), number);
                    }
                    (Err(fault), _) => visitor.fault(fault, number),
                }
            }
            index.marks[last] = line_end;
            before = last;
            start = line_end + 1;
        }
        index.line_ends.len() as u32
    }
}
