//! The raw fields of one line, as a format has found them and as a plan reads them.

use crate::keys::{Key, Keys};

/// A raw value and its 0-based byte in the line.
#[derive(Clone, Copy)]
pub(crate) struct Value<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: u32,
}

/// Values of each column of one line, in their order.
pub(crate) trait Fields {
    type Cursor: Copy;
    fn first(&self, column: u32) -> Option<Self::Cursor>;
    fn next(&self, cursor: Self::Cursor) -> Option<Self::Cursor>;
    fn value(&self, cursor: Self::Cursor) -> Value<'_>;
}

/// Where the bytes of a cell lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Line,
    /// Bytes that do not stand in the line as they are: an unescaped quote.
    Scratch,
    /// Text of a joined side file.
    Side(u8),
}

#[derive(Clone, Copy)]
struct Cell {
    start: u32,
    end: u32,
    at: u32,
    next: u32,
    source: Source,
}

const NONE: u32 = u32::MAX;

/// Cells of one line, found by a format that is not a plain row of fields; reused from line to line.
pub(crate) struct Cells {
    heads: Vec<u32>,
    tails: Vec<u32>,
    list: Vec<Cell>,
    /// Per column: whether it has occurred in any line.
    pub(crate) seen: Vec<bool>,
    pub(crate) scratch: Vec<u8>,
    /// Columns of formats whose lines name them.
    pub(crate) keys: Keys,
}

impl Cells {
    pub(crate) fn new(num_columns: usize, keys: Keys) -> Self {
        Self {
            heads: vec![NONE; num_columns],
            tails: vec![NONE; num_columns],
            list: Vec::new(),
            seen: vec![false; num_columns],
            scratch: Vec::new(),
            keys,
        }
    }

    pub(crate) fn start(&mut self) {
        self.heads.fill(NONE);
        self.list.clear();
        self.scratch.clear();
    }

    /// Column of a key, if it is one.
    pub(crate) fn column_of(&mut self, key: &[u8]) -> Option<u32> {
        match self.keys.find(key) {
            Key::Column(column) => {
                self.widen(column as usize + 1);
                Some(column)
            }
            Key::Other => None,
        }
    }

    /// Makes room for columns that were discovered on the way.
    fn widen(&mut self, num_columns: usize) {
        if num_columns > self.heads.len() {
            self.heads.resize(num_columns, NONE);
            self.tails.resize(num_columns, NONE);
            self.seen.resize(num_columns, false);
        }
    }

    pub(crate) fn push(&mut self, column: u32, source: Source, start: usize, end: usize, at: usize) {
        let index = self.list.len() as u32;
        self.list.push(Cell {
            start: start as u32,
            end: end as u32,
            at: at as u32,
            next: NONE,
            source,
        });
        let slot = column as usize;
        self.seen[slot] = true;
        if self.heads[slot] == NONE {
            self.heads[slot] = index;
        } else {
            self.list[self.tails[slot] as usize].next = index;
        }
        self.tails[slot] = index;
    }

    /// A value of the line itself.
    pub(crate) fn push_line(&mut self, column: u32, start: usize, end: usize) {
        self.push(column, Source::Line, start, end, start);
    }
}

/// Cells together with the bytes that they point into.
pub(crate) struct CellView<'a> {
    pub(crate) cells: &'a Cells,
    pub(crate) line: &'a [u8],
    pub(crate) sides: &'a [Vec<u8>],
}

impl Fields for CellView<'_> {
    type Cursor = u32;

    #[inline]
    fn first(&self, column: u32) -> Option<u32> {
        let head = self.cells.heads[column as usize];
        (head != NONE).then_some(head)
    }

    #[inline]
    fn next(&self, cursor: u32) -> Option<u32> {
        let next = self.cells.list[cursor as usize].next;
        (next != NONE).then_some(next)
    }

    #[inline]
    fn value(&self, cursor: u32) -> Value<'_> {
        let cell = self.cells.list[cursor as usize];
        let bytes = match cell.source {
            Source::Line => self.line,
            Source::Scratch => &self.cells.scratch,
            Source::Side(side) => &self.sides[side as usize],
        };
        Value {
            bytes: &bytes[cell.start as usize..cell.end as usize],
            at: cell.at,
        }
    }
}

/// A line of fields between single-byte delimiters, by their positions in the block.
pub(crate) struct SplitView<'a> {
    pub(crate) block: &'a [u8],
    /// One mark for each field: where it ends.
    pub(crate) marks: &'a [u32],
    pub(crate) start: u32,
    /// End of the last field, before any carriage return.
    pub(crate) end: u32,
    /// First column that the line has: 1 where the leading one is left out.
    pub(crate) first_column: u32,
}

impl Fields for SplitView<'_> {
    type Cursor = u32;

    #[inline]
    fn first(&self, column: u32) -> Option<u32> {
        (column >= self.first_column).then(|| column - self.first_column)
    }

    #[inline]
    fn next(&self, _cursor: u32) -> Option<u32> {
        None
    }

    #[inline]
    fn value(&self, cursor: u32) -> Value<'_> {
        let field = cursor as usize;
        let from = if field == 0 {
            self.start
        } else {
            self.marks[field - 1] + 1
        };
        let to = if field + 1 == self.marks.len() {
            self.end
        } else {
            self.marks[field]
        };
        Value {
            bytes: &self.block[from as usize..to as usize],
            at: from - self.start,
        }
    }
}
