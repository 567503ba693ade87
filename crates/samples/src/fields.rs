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
    /// Columns that the line can have; `first` takes any below.
    fn num_columns(&self) -> usize;
    fn first(&self, column: u32) -> Option<Self::Cursor>;
    fn next(&self, cursor: Self::Cursor) -> Option<Self::Cursor>;
    fn value(&self, cursor: Self::Cursor) -> Value<'_>;

    /// The value of a column that takes one; at fault is the second.
    #[inline]
    fn only(&self, column: u32) -> Result<Option<Value<'_>>, Value<'_>> {
        let Some(cursor) = self.first(column) else {
            return Ok(None);
        };
        match self.next(cursor) {
            None => Ok(Some(self.value(cursor))),
            Some(second) => Err(self.value(second)),
        }
    }

    /// A value and its first eight bytes, little-endian; those behind its end may be anything.
    #[inline]
    fn value_and_head(&self, cursor: Self::Cursor) -> (Value<'_>, u64) {
        let value = self.value(cursor);
        (value, head(value.bytes))
    }
}

/// The first eight bytes, little-endian, with zeros where there are fewer.
fn head(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .rev()
        .fold(0, |head, &byte| head << 8 | u64::from(byte))
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

    fn num_columns(&self) -> usize {
        self.cells.heads.len()
    }

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
    /// The mark before the line, then for each field the one behind it.
    pub(crate) marks: &'a [u32],
    /// First column that the line has: 1 where the leading one is left out.
    pub(crate) first_column: u32,
}

impl SplitView<'_> {
    #[inline]
    fn bounds(&self, field: u32) -> (u32, u32) {
        let field = field as usize;
        // The mark before the first line of a block is -1.
        (self.marks[field].wrapping_add(1), self.marks[field + 1])
    }
}

impl Fields for SplitView<'_> {
    type Cursor = u32;

    fn num_columns(&self) -> usize {
        self.marks.len() - 1 + self.first_column as usize
    }

    #[inline]
    fn first(&self, column: u32) -> Option<u32> {
        column.checked_sub(self.first_column)
    }

    #[inline]
    fn next(&self, _cursor: u32) -> Option<u32> {
        None
    }

    #[inline]
    fn value(&self, cursor: u32) -> Value<'_> {
        let (from, to) = self.bounds(cursor);
        Value {
            bytes: &self.block[from as usize..to as usize],
            at: from - self.marks[0].wrapping_add(1),
        }
    }

    #[inline]
    fn value_and_head(&self, cursor: u32) -> (Value<'_>, u64) {
        let (from, to) = self.bounds(cursor);
        let rest = &self.block[from as usize..];
        let value = Value {
            bytes: &rest[..(to - from) as usize],
            at: from - self.marks[0].wrapping_add(1),
        };
        let head = match rest.first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => head(rest),
        };
        (value, head)
    }
}
