//! The reader: files in, batches out, in an order that no number of threads changes.
//!
//! One thread cuts files into blocks of lines, `threads` parse them, one puts them back in order and makes
//! batches. Blocks travel in a circle of fixed size, so memory is bounded however slow the consumer is.
//! Threads wait on channels; when the reader goes away its channel closes, and so does the one before, up
//! to the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use clickmill_types::Schema;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use crate::Error;
use crate::arrivals::Arrivals;
use crate::bad::BadLines;
use crate::batch::Batch;
use crate::block::Block;
use crate::config::ReaderConfig;
use crate::parser::Parser;
use crate::pipeline::{Delivery, Job, Piece, assemble, cut, parse, wait_for};
use crate::position::Position;
use crate::rows::Rows;
use crate::track::Tracker;
use crate::units::Units;

pub struct Reader {
    deliveries: Option<Receiver<Result<Delivery, Error>>>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    arrivals: Option<Arc<Arrivals>>,
    parser: Arc<Parser>,
    /// Columns that have occurred up to the last batch that was given out.
    seen: Vec<bool>,
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
        Self::open_arriving(schema, config, position, None)
    }

    /// Files with `facts` may come later; each is waited for before it is opened.
    pub fn open_arriving(
        schema: &Arc<Schema>,
        config: &ReaderConfig,
        position: Option<&Position>,
        arrivals: Option<&Arc<Arrivals>>,
    ) -> Result<Self, Error> {
        config.check()?;
        let units = Arc::new(Units::new(config)?);
        if config.format.looks_at_first_file() {
            wait_for(arrivals.map(Arc::as_ref), &units, 0)?;
        }
        let first_file = units.files.first().map(|file| file.path.as_path());
        let parser = Parser::new(schema, &config.format, first_file)?;
        let parser = Arc::new(parser.with_binary_label(config.binary_label));
        let start = start_position(&units, &parser, config, position)?;
        let job = Job {
            config: config.clone(),
            units,
            parser,
            start,
            stop: Arc::new(AtomicBool::new(false)),
            arrivals: arrivals.cloned(),
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
        let (stop, arrivals) = (Arc::clone(&job.stop), job.arrivals.clone());
        let (parser, seen) = (Arc::clone(&job.parser), job.start.seen.clone());
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
            arrivals,
            parser,
            seen,
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
        loop {
            if let Poll::Ready(batch) = self.next_within(Duration::MAX)? {
                return Ok(batch);
            }
        }
    }

    /// As `next`, but pending where there is nothing within `wait`.
    pub fn next_within(&mut self, wait: Duration) -> Result<Poll<Option<Batch>>, Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let Some(deliveries) = &self.deliveries else {
            return Ok(Poll::Ready(None));
        };
        match deliveries.recv_timeout(wait) {
            Ok(Ok(delivery)) => {
                self.bad = delivery.bad;
                self.raw_bytes = delivery.raw_bytes;
                match delivery.batch {
                    Some(batch) => {
                        self.seen.clone_from(&batch.position.seen);
                        Ok(Poll::Ready(Some(batch)))
                    }
                    None => self.next_within(wait),
                }
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
            Err(RecvTimeoutError::Timeout) => Ok(Poll::Pending),
            Err(RecvTimeoutError::Disconnected) => {
                self.raw_bytes = self.raw_total;
                self.close();
                Ok(Poll::Ready(None))
            }
        }
    }

    /// Bad lines up to the last batch that was given out, with a shuffle up to the end of its window; at the end all.
    pub fn bad_lines(&self) -> &BadLines {
        &self.bad
    }

    /// Slots whose columns have not occurred up to the last batch that was given out, with a shuffle up to
    /// its window; none for formats of fixed columns, and where nobody requires them.
    pub fn absent_slots(&self) -> Vec<&str> {
        let plan = self.parser.plan();
        plan.absent(&self.seen).map(|(_, slot)| slot).collect()
    }

    /// Bytes of the files behind the last batch that was given out, and of all.
    pub fn progress(&self) -> (u64, u64) {
        (self.raw_bytes, self.raw_total)
    }

    /// Stops the threads and waits for them.
    pub fn close(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.deliveries = None;
        if let Some(arrivals) = &self.arrivals {
            arrivals.close();
        }
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
    // Nobody asks any more which columns occurred, or everybody has asked from the start.
    if num_seen > 0 && position.seen.len() != num_seen {
        return fail("was made with another schema, or with `require_slots: false`");
    }
    if position.unit > 0 && position.unit >= units.order.len() as u64 {
        return fail("lies behind the last file");
    }
    let mut position = position.clone();
    position.seen.truncate(num_seen);
    Ok(position)
}
