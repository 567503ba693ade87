//! The reader: files in, batches out, in an order that no number of threads changes.
//!
//! One thread cuts files into blocks of lines, `threads` parse them, one puts them back in order and makes
//! batches. Blocks travel in a circle of fixed size, so memory is bounded however slow the consumer is.
//! Threads wait on channels; when the reader goes away its channel closes, and so does the one before, up
//! to the file.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use clickmill_types::Schema;
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::Error;
use crate::assemble::Assembler;
use crate::bad::BadLines;
use crate::batch::Batch;
use crate::block::{Block, Cut, Cutter};
use crate::config::ReaderConfig;
use crate::parser::{LineFault, Parser};
use crate::position::Position;
use crate::rows::Rows;
use crate::track::Tracker;
use crate::units::Units;

/// What travels to the consumer.
struct Delivery {
    batch: Batch,
    bad: BadLines,
    raw_bytes: u64,
}

/// A block in its place, or why there is none.
type Piece = (u64, Result<Block, Error>);

pub struct Reader {
    deliveries: Option<Receiver<Result<Delivery, Error>>>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    bad: BadLines,
    raw_bytes: u64,
    raw_total: u64,
    failure: Option<Error>,
}

impl Reader {
    pub fn open(
        schema: &Arc<Schema>,
        config: &ReaderConfig,
        position: Option<&Position>,
    ) -> Result<Self, Error> {
        config.check()?;
        let units = Arc::new(Units::new(config)?);
        let first_file = units.files.first().map(|file| file.path.as_path());
        let parser = Arc::new(Parser::new(schema, &config.format, first_file)?);
        let start = start_position(&units, &parser, config, position)?;
        let job = Job {
            config: config.clone(),
            units,
            parser,
            start,
            stop: Arc::new(AtomicBool::new(false)),
        };
        Ok(Self::spawn(job))
    }

    fn spawn(job: Job) -> Self {
        let num_blocks = job.config.threads * 2 + 2;
        let (free_sender, free) = bounded(num_blocks);
        let (raw_sender, raw) = bounded(num_blocks);
        let (parsed_sender, parsed) = bounded::<Piece>(num_blocks + 1);
        let (delivery_sender, deliveries) = bounded(job.config.queue);
        for _ in 0..num_blocks {
            let block = Block {
                rows: Rows::new(job.parser.plan().shape()),
                ..Block::default()
            };
            free_sender
                .send(block)
                .expect("the channel has room for every block");
        }
        let bad = job.start.bad.clone();
        let tracker = Tracker::new(
            Arc::clone(&job.units),
            job.start.clone(),
            job.config.max_bad_lines,
        );
        let (raw_bytes, raw_total) = (tracker.raw_bytes, job.units.raw_bytes());
        let stop = Arc::clone(&job.stop);
        let job = Arc::new(job);
        let mut threads = Vec::new();
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new()
                .name(format!("clickmill-{name}"))
                .spawn(body)
                .expect("the system gives a reader its threads")
        };
        for _ in 0..job.config.threads {
            let (job, raw, parsed) = (Arc::clone(&job), raw.clone(), parsed_sender.clone());
            threads.push(spawn("parse", Box::new(move || parse(&job, &raw, &parsed))));
        }
        let cut_job = Arc::clone(&job);
        threads.push(spawn(
            "cut",
            Box::new(move || cut(&cut_job, &free, &raw_sender, &parsed_sender)),
        ));
        threads.push(spawn(
            "assemble",
            Box::new(move || assemble(&job, tracker, &parsed, &free_sender, &delivery_sender)),
        ));
        Self {
            deliveries: Some(deliveries),
            threads,
            stop,
            bad,
            raw_bytes,
            raw_total,
            failure: None,
        }
    }

    /// The next batch, waiting for it; none at the end of the pass, and after `close`.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator could not report a failure and end"
    )]
    pub fn next(&mut self) -> Result<Option<Batch>, Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let Some(deliveries) = &self.deliveries else {
            return Ok(None);
        };
        match deliveries.recv() {
            Ok(Ok(delivery)) => {
                self.bad = delivery.bad;
                self.raw_bytes = delivery.raw_bytes;
                Ok(Some(delivery.batch))
            }
            Ok(Err(error)) => {
                if let Error::BadLines { count, first, .. } = &error {
                    let mut bad = self.bad.clone();
                    bad.replace(*count, first);
                    self.bad = bad;
                }
                self.failure = Some(error.clone());
                self.close();
                Err(error)
            }
            Err(_) => {
                self.raw_bytes = self.raw_total;
                self.close();
                Ok(None)
            }
        }
    }

    /// Bad lines up to the last batch that was given out; with a shuffle, up to the end of its window.
    pub fn bad_lines(&self) -> &BadLines {
        &self.bad
    }

    /// Bytes of the files behind the last batch that was given out, and of all.
    pub fn progress(&self) -> (u64, u64) {
        (self.raw_bytes, self.raw_total)
    }

    /// Stops the threads and waits for them.
    pub fn close(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.deliveries = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to say here.
            let _ = thread.join();
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.close();
    }
}

/// What every thread of a reader needs to know.
struct Job {
    config: ReaderConfig,
    units: Arc<Units>,
    parser: Arc<Parser>,
    start: Position,
    stop: Arc<AtomicBool>,
}

fn start_position(
    units: &Units,
    parser: &Parser,
    config: &ReaderConfig,
    position: Option<&Position>,
) -> Result<Position, Error> {
    let num_seen = match parser.format.columns() {
        crate::Columns::Named(_) if config.require_slots => parser.plan().columns().len(),
        crate::Columns::Fixed(_) | crate::Columns::Named(_) => 0,
    };
    let Some(position) = position else {
        return Ok(Position {
            fingerprint: units.fingerprint.clone(),
            seen: vec![false; num_seen],
            ..Position::default()
        });
    };
    let fail = |reason: &str| {
        Err(Error::Position {
            reason: reason.to_owned(),
        })
    };
    if position.fingerprint != units.fingerprint {
        return fail("was made with other files, another format, shuffle, shard or pass");
    }
    if position.seen.len() != num_seen {
        return fail("was made with another schema or `require_slots`");
    }
    if position.unit > 0 && position.unit >= units.order.len() as u64 {
        return fail("lies behind the last file");
    }
    Ok(position.clone())
}

/// Files to blocks.
fn cut(job: &Job, free: &Receiver<Block>, raw: &Sender<Block>, parsed: &Sender<Piece>) {
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
            let is_end = block.data.is_empty() && block.faults.is_empty();
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
fn parse(job: &Job, raw: &Receiver<Block>, parsed: &Sender<Piece>) {
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
fn assemble(
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
                    batch,
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
            // The cutter may have finished; then the block is not needed any more.
            let _ = free.send(block);
        }
    }
    if job.stop.load(Ordering::Relaxed) {
        return Ok(());
    }
    let (bad, raw_bytes) = (&tracker.here.bad, tracker.raw_bytes);
    let mut sink = |batch| {
        let delivery = Delivery {
            batch,
            bad: bad.clone(),
            raw_bytes,
        };
        deliveries.send(Ok(delivery)).is_ok()
    };
    if assembler
        .finish(&tracker.here, config.keep_last, &mut sink)
        .is_err()
    {
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
