//! Rows in their order to batches: windows of a shuffle, batch boundaries, positions.

use std::ops::Range;

use crate::batch::Batch;
use crate::builder::BatchBuilder;
use crate::config::Shuffle;
use crate::position::Position;
use crate::rows::{Rows, Shape};
use crate::shuffle::permutation;

/// The consumer has gone away: nothing more is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed;

/// Takes finished batches; false when no more are wanted.
pub(crate) type Sink<'a> = dyn FnMut(Batch) -> bool + 'a;

pub(crate) struct Assembler {
    shape: Shape,
    batch_size: usize,
    builder: BatchBuilder,
    window: Option<Window>,
}

struct Window {
    num_rows: usize,
    seed: u64,
    pass: u64,
    rows: Rows,
    /// Where the window starts.
    start: Position,
    /// Rows of the window that were given out before this reader was opened.
    skip: usize,
}

impl Assembler {
    /// `start` is where the first row that will be pushed stands.
    pub(crate) fn new(
        shape: &Shape,
        batch_size: usize,
        shuffle: &Shuffle,
        pass: u64,
        start: &Position,
    ) -> Self {
        let window = match *shuffle {
            Shuffle::None => None,
            Shuffle::Buffer { rows, seed } | Shuffle::Block { rows, seed, .. } => Some(Window {
                num_rows: rows,
                seed,
                pass,
                rows: Rows::new(shape),
                skip: usize::try_from(start.emitted).unwrap_or(usize::MAX),
                start: Position {
                    emitted: 0,
                    ..start.clone()
                },
            }),
        };
        Self {
            shape: shape.clone(),
            batch_size,
            builder: BatchBuilder::new(shape.clone()),
            window,
        }
    }

    /// `after` gives the position behind a row of `rows`; it is asked at boundaries only.
    pub(crate) fn push(
        &mut self,
        rows: &Rows,
        range: Range<usize>,
        after: &dyn Fn(usize) -> Position,
        sink: &mut Sink<'_>,
    ) -> Result<(), Closed> {
        let mut next = range.start;
        while next < range.end {
            let room = match &self.window {
                Some(window) => window.num_rows - window.rows.len(),
                None => self.batch_size - self.builder.num_rows(),
            };
            let stop = range.end.min(next + room);
            let is_full = stop - next == room;
            if let Some(window) = &mut self.window {
                window.rows.append(rows, next..stop, &self.shape);
                if is_full {
                    self.flush_window(after(stop - 1), sink)?;
                }
            } else {
                self.builder.append(rows, next..stop);
                if is_full {
                    give(sink, self.builder.finish(after(stop - 1)))?;
                }
            }
            next = stop;
        }
        Ok(())
    }

    /// Gives out what is left; `end` is the position behind everything.
    pub(crate) fn finish(
        &mut self,
        end: &Position,
        keep_last: bool,
        sink: &mut Sink<'_>,
    ) -> Result<(), Closed> {
        self.flush_window(end.clone(), sink)?;
        if keep_last && self.builder.num_rows() > 0 {
            let window = self
                .window
                .as_ref()
                .map_or(end.window, |window| window.start.window);
            let position = Position {
                window,
                emitted: 0,
                ..end.clone()
            };
            give(sink, self.builder.finish(position))?;
        }
        Ok(())
    }

    /// Gives out the rows of the window in permuted order; `end` is where the next window starts.
    fn flush_window(&mut self, end: Position, sink: &mut Sink<'_>) -> Result<(), Closed> {
        let Some(window) = &mut self.window else {
            return Ok(());
        };
        if window.rows.is_empty() {
            return Ok(());
        }
        let number = window.start.window;
        let order = permutation(window.rows.len(), window.seed, window.pass, number);
        let next_start = Position {
            window: number + 1,
            emitted: 0,
            ..end
        };
        let mut place = window.skip;
        while place < order.len() {
            let room = self.batch_size - self.builder.num_rows();
            let stop = order.len().min(place + room);
            self.builder.gather(&window.rows, &order[place..stop]);
            if stop - place == room {
                let position = if stop == order.len() {
                    next_start.clone()
                } else {
                    Position {
                        emitted: stop as u64,
                        ..window.start.clone()
                    }
                };
                give(sink, self.builder.finish(position))?;
            }
            place = stop;
        }
        window.rows.clear();
        window.skip = 0;
        window.start = next_start;
        Ok(())
    }
}

fn give(sink: &mut Sink<'_>, batch: Batch) -> Result<(), Closed> {
    if sink(batch) { Ok(()) } else { Err(Closed) }
}
