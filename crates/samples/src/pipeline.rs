//! What the threads of a reader do: cut files into blocks, parse them, put them in order and make batches.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender};

use crate::Error;
use crate::arrivals::Arrivals;
use crate::assemble::Assembler;
use crate::bad::BadLines;
use crate::batch::Batch;
use crate::block::{Block, Cut, Cutter};
use crate::config::ReaderConfig;
use crate::parser::{LineFault, Parser};
use crate::position::Position;
use crate::track::Tracker;
use crate::units::Units;

/// What travels to the consumer.
pub(crate) struct Delivery {
    /// None behind the last one.
    pub(crate) batch: Option<Batch>,
    pub(crate) bad: BadLines,
    pub(crate) raw_bytes: u64,
}

/// A block in its place, or why there is none.
pub(crate) type Piece = (u64, Result<Block, Error>);

/// What every thread of a reader needs to know.
pub(crate) struct Job {
    pub(crate) config: ReaderConfig,
    pub(crate) units: Arc<Units>,
    pub(crate) parser: Arc<Parser>,
    pub(crate) start: Position,
    pub(crate) stop: Arc<AtomicBool>,
    /// None: all files are here.
    pub(crate) arrivals: Option<Arc<Arrivals>>,
}

impl Job {
    /// Waits until a file is here.
    pub(crate) fn wait_for(&self, file: usize) -> Result<(), Error> {
        wait_for(self.arrivals.as_deref(), &self.units, file)
    }
}

pub(crate) fn wait_for(arrivals: Option<&Arrivals>, units: &Units, file: usize) -> Result<(), Error> {
    let Some(arrivals) = arrivals else {
        return Ok(());
    };
    arrivals.wait_for(file).map_err(|reason| Error::Arrival {
        path: units.files[file].path.display().to_string(),
        reason,
    })
}

/// Tells of the files that nobody reads any more: units of each that are left.
struct Remainder<'a> {
    job: &'a Job,
    units: Vec<usize>,
}

impl<'a> Remainder<'a> {
    fn new(job: &'a Job) -> Self {
        let mut units = vec![0; job.units.files.len()];
        for unit in job.units.order.iter().skip(job.start.unit as usize) {
            units[unit.file] += 1;
        }
        Self { job, units }
    }

    fn pass(&mut self, block: &Block) {
        let Some(arrivals) = self.job.arrivals.as_ref().filter(|_| block.is_end()) else {
            return;
        };
        let file = self.job.units.order[block.unit as usize].file;
        self.units[file] -= 1;
        if self.units[file] == 0 {
            arrivals.finish(file);
        }
    }
}

/// Files to blocks.
pub(crate) fn cut(job: &Job, free: &Receiver<Block>, raw: &Sender<Block>, parsed: &Sender<Piece>) {
    let mut sequence = 0;
    if let Err(error) = cut_units(job, free, raw, &mut sequence) {
        // In its place in the order, so that what lies before is given out first.
        let _ = parsed.send((sequence, Err(error)));
    }
}

fn cut_units(
    job: &Job,
    free: &Receiver<Block>,
    raw: &Sender<Block>,
    sequence: &mut u64,
) -> Result<(), Error> {
    for (index, unit) in job.units.order.iter().enumerate().skip(job.start.unit as usize) {
        let is_resumed = index as u64 == job.start.unit && (job.start.offset > 0 || job.start.line > 0);
        let resume = is_resumed.then_some(job.start.offset);
        let file = &job.units.files[unit.file];
        job.wait_for(unit.file)?;
        let mut cutter = Cutter::open(file, *unit, resume, job.config.max_line_bytes)?;
        let mut has_header = resume.is_none() && unit.start == 0 && job.parser.format.header().is_some();
        loop {
            // Waits for a block to come round; closed when the reader is gone.
            let Ok(mut block) = free.recv() else {
                return Ok(());
            };
            if job.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            block.sequence = *sequence;
            block.unit = index as u64;
            block.offset = cutter.offset();
            block.header_bytes = 0;
            block.faults.clear();
            block.lines = 0;
            match cutter.next(&mut block.data)? {
                // Goes its way empty: it tells the end of the unit.
                Cut::End => {}
                Cut::Lines => {
                    if has_header {
                        block.header_bytes = header_bytes(job, &file.path, &block.data)?;
                        has_header = false;
                    }
                }
                Cut::TooLong(fault) => block.faults.push(LineFault { line: 0, fault }),
            }
            block.end = cutter.offset();
            let is_end = block.is_end();
            block.raw_bytes = cutter.raw_bytes();
            if raw.send(block).is_err() {
                return Ok(());
            }
            *sequence += 1;
            if is_end {
                break;
            }
        }
    }
    Ok(())
}

/// Length of the header line at the start of `data`, which must be that of the first file.
fn header_bytes(job: &Job, path: &Path, data: &[u8]) -> Result<usize, Error> {
    let end = memchr::memchr(b'\n', data);
    let line = &data[..end.unwrap_or(data.len())];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let expected = job.parser.format.header().unwrap_or_default();
    if line != expected {
        return Err(Error::Header {
            path: path.display().to_string(),
            reason: format!(
                "the header is not that of the first file: `{}`",
                String::from_utf8_lossy(expected)
            ),
        });
    }
    Ok(end.map_or(data.len(), |at| at + 1))
}

/// Blocks of text to blocks of rows.
pub(crate) fn parse(job: &Job, raw: &Receiver<Block>, parsed: &Sender<Piece>) {
    let mut scratch = job.parser.scratch();
    for mut block in raw {
        let sequence = block.sequence;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            block.rows.clear();
            if !block.faults.is_empty() {
                block.lines = 1;
                return block;
            }
            let header_lines = u32::from(block.header_bytes > 0);
            block.lines = header_lines
                + job.parser.parse_block(
                    &block.data[block.header_bytes..],
                    job.config.max_line_bytes,
                    &mut scratch,
                    &mut block.rows,
                    &mut block.faults,
                );
            block.seen.clone_from(&scratch.split.cells.seen);
            block.others.clear();
            if job.config.require_slots {
                block
                    .others
                    .extend(scratch.split.cells.keys.others().map(<[u8]>::to_vec));
            }
            block
        }));
        let piece = outcome.map_err(|_| Error::Thread {
            reason: format!("parsing block {sequence} failed; please report it"),
        });
        if parsed.send((sequence, piece)).is_err() {
            return;
        }
    }
}

/// Blocks in order to batches.
pub(crate) fn assemble(
    job: &Job,
    tracker: Tracker,
    parsed: &Receiver<Piece>,
    free: &Sender<Block>,
    deliveries: &Sender<Result<Delivery, Error>>,
) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        assemble_blocks(job, tracker, parsed, free, deliveries)
    }));
    let error = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(_) => Error::Thread {
            reason: "assembling batches failed; please report it".to_owned(),
        },
    };
    // The consumer may have gone; then nobody asks.
    let _ = deliveries.send(Err(error));
}

fn assemble_blocks(
    job: &Job,
    mut tracker: Tracker,
    parsed: &Receiver<Piece>,
    free: &Sender<Block>,
    deliveries: &Sender<Result<Delivery, Error>>,
) -> Result<(), Error> {
    let config = &job.config;
    let mut assembler = Assembler::new(
        job.parser.plan().shape(),
        config.batch_size,
        &config.shuffle,
        config.pass,
        &job.start,
    );
    let mut waiting: BTreeMap<u64, Result<Block, Error>> = BTreeMap::new();
    let mut next = 0;
    let mut remainder = Remainder::new(job);
    for (sequence, piece) in parsed {
        waiting.insert(sequence, piece);
        while let Some(piece) = waiting.remove(&next) {
            next += 1;
            let block = piece?;
            let tracked = tracker.track(&block)?;
            let (bad, raw_bytes) = (&tracker.here.bad, tracker.raw_bytes);
            let seen = &tracker.here.seen;
            let mut sink = |batch| {
                let delivery = Delivery {
                    batch: Some(batch),
                    bad: bad.clone(),
                    raw_bytes,
                };
                deliveries.send(Ok(delivery)).is_ok()
            };
            let rows = 0..tracked.num_rows;
            if assembler
                .push(&block.rows, rows, &|row| tracked.after(row, seen), &mut sink)
                .is_err()
            {
                return Ok(());
            }
            if let Some(error) = tracked.error {
                return Err(error);
            }
            remainder.pass(&block);
            // The cutter may have finished; then the block is not needed any more.
            let _ = free.send(block);
        }
    }
    if job.stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    let (bad, raw_bytes) = (&tracker.here.bad, tracker.raw_bytes);
    let deliver = |batch| {
        let delivery = Delivery {
            batch,
            bad: bad.clone(),
            raw_bytes,
        };
        deliveries.send(Ok(delivery)).is_ok()
    };
    let is_taken = assembler
        .finish(&tracker.here, config.keep_last, &mut |batch| deliver(Some(batch)))
        .is_ok();
    // Bad lines may stand behind the last batch.
    if !is_taken || !deliver(None) {
        return Ok(());
    }
    if tracker.here.rows == 0 {
        return Err(no_samples(config, &tracker));
    }
    tracker.check_slots(&job.parser)
}

fn no_samples(config: &ReaderConfig, tracker: &Tracker) -> Error {
    let files = config.files.len();
    let first = &config.files[0].path;
    let bad = match tracker.here.bad.count {
        0 => String::new(),
        count => format!(
            "; {count} lines were bad, the first: {}",
            tracker.here.bad.first()[0]
        ),
    };
    let shard = config.shard.map_or_else(String::new, |shard| {
        format!(
            " in shard {} of {}; with fewer files than shards use `by: ranges`",
            shard.index, shard.count
        )
    });
    Error::NoSamples {
        reason: format!("no sample in {files} files, the first is {first}{shard}{bad}"),
    }
}
