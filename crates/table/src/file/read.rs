//! Reading a table: a damaged file is refused with the place, never half believed.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use clickmill_types::sign::mix;

use super::format::{END_PAYLOAD, Header, Kind, MAX_HISTORY, id};
use super::scanner::{Scanner, damage};
use crate::config::{Optimizer, TableConfig};
use crate::layout::{HEAD_BYTES, Layout};
use crate::ledger::Saved;
use crate::table::bucket_of;
use crate::{Error, Table};

/// Most decaying fences between a save and its increment: each of them is a pass over all rows.
const MAX_DECAYS: u32 = 100_000;

/// Which signs' rows are taken.
type Keep<'a> = &'a dyn Fn(u64) -> bool;

impl Table {
    /// Reads a full save and the increments that follow it, in order.
    ///
    /// `config` takes the place of the stored one: bucket count, hyper-parameters, admission and eviction
    /// may change, what shapes a row may not.
    pub fn load<P: AsRef<Path>>(paths: &[P], config: Option<TableConfig>) -> Result<Self, Error> {
        Self::load_chain(paths, config, &|_| true)
    }

    /// As `load`, leaving out the rows of signs for which `keep` does not hold.
    pub(crate) fn load_chain<P: AsRef<Path>>(
        paths: &[P],
        config: Option<TableConfig>,
        keep: Keep<'_>,
    ) -> Result<Self, Error> {
        let Some((first, increments)) = paths.split_first() else {
            return Err(Error::argument("no file to load"));
        };
        let mut table = Self::read_base(open(first.as_ref())?, first.as_ref(), config, keep)?;
        for path in increments {
            table.read_increment(open(path.as_ref())?, path.as_ref(), keep)?;
        }
        Ok(table)
    }

    /// Reads a full save from memory; `name` stands for the file in errors.
    pub fn from_bytes(bytes: &[u8], name: &Path, config: Option<TableConfig>) -> Result<Self, Error> {
        Self::read_base(bytes, name, config, &|_| true)
    }

    /// Adds an increment from memory; a table that has refused one is not to be used any further.
    pub fn take_increment(&mut self, bytes: &[u8], name: &Path) -> Result<(), Error> {
        self.check_no_save()?;
        self.read_increment(bytes, name, &|_| true)
    }

    /// As `load_chain`, on top of what was loaded from the files before `increments`.
    pub(crate) fn extend_chain<P: AsRef<Path>>(
        &mut self,
        increments: &[P],
        keep: Keep<'_>,
    ) -> Result<(), Error> {
        for path in increments {
            self.read_increment(open(path.as_ref())?, path.as_ref(), keep)?;
        }
        Ok(())
    }

    fn read_base(
        input: impl Read,
        path: &Path,
        config: Option<TableConfig>,
        keep: Keep<'_>,
    ) -> Result<Self, Error> {
        let mut scanner = Scanner::new(input, path);
        let header = scanner.header()?;
        if let Some(base) = &header.base {
            return Err(scanner.wrong(0, "a full save", format!("an increment on {base}")));
        }
        let config = match config {
            Some(config) => compatible(config, &header.config)?,
            None => header.config.clone(),
        };
        let mut table = Self::new(config)?;
        table.take(scanner, &header, keep)?;
        Ok(table)
    }

    fn read_increment(&mut self, input: impl Read, path: &Path, keep: Keep<'_>) -> Result<(), Error> {
        let mut scanner = Scanner::new(input, path);
        let header = scanner.header()?;
        let last = self
            .ledger
            .saved
            .as_ref()
            .map(|saved| saved.id.clone())
            .unwrap_or_default();
        match &header.base {
            Some(base) if *base == last => {}
            Some(base) => {
                return Err(scanner.wrong(0, format!("an increment on {last}"), format!("one on {base}")));
            }
            None => return Err(scanner.wrong(0, format!("an increment on {last}"), "a full save")),
        }
        if Layout::new(&header.config) != self.layout || header.config.spec != self.config.spec {
            return Err(scanner.wrong(
                0,
                "rows of the same shape as in its base",
                "rows of another shape",
            ));
        }
        let is_decay_likely = header
            .decays
            .checked_sub(self.ledger.decays)
            .is_some_and(|more| more <= MAX_DECAYS);
        if !is_decay_likely || header.step < self.step {
            return Err(scanner.wrong(0, "steps and fences after those of its base", "others"));
        }
        if let Some(rule) = header.config.eviction.show_click {
            // Each decay rounds: the bits are only the same if they are made one by one.
            for _ in self.ledger.decays..header.decays {
                self.decay_once(rule.decay);
            }
        }
        self.take(scanner, &header, keep)
    }

    fn take<R: Read>(
        &mut self,
        mut scanner: Scanner<'_, R>,
        header: &Header,
        keep: Keep<'_>,
    ) -> Result<(), Error> {
        self.take_header(&scanner, header)?;
        let mut sketch = Vec::new();
        let mut tombstones = HashSet::new();
        let (mut num_rows, mut num_tombstones) = (0, 0);
        let path = scanner.path;
        let mut before = Kind::Sketch;
        let digest_of_file = loop {
            let start = scanner.offset;
            let digest = scanner.digest();
            let (kind, payload) = scanner.block()?;
            if kind < before {
                return Err(scanner.wrong(start, format!("no {kind:?} block after {before:?}"), "one"));
            }
            if kind >= Kind::Rows && before < Kind::Rows {
                self.bury(&tombstones)?;
                tombstones.clear();
            }
            before = kind;
            match kind {
                Kind::Sketch => {
                    let limit = self.admission.bytes().max(1 << 30);
                    if sketch.len() + payload.len() > limit {
                        return Err(scanner.wrong(
                            start,
                            format!("a sketch of at most {limit} bytes"),
                            "more",
                        ));
                    }
                    sketch.extend_from_slice(payload);
                }
                Kind::Tombstones => {
                    if header.base.is_none() || !payload.len().is_multiple_of(8) {
                        return Err(scanner.wrong(start, "whole signs, in an increment", "other tombstones"));
                    }
                    num_tombstones += payload.len() as u64 / 8;
                    tombstones.extend(
                        payload
                            .as_chunks::<8>()
                            .0
                            .iter()
                            .map(|sign| u64::from_le_bytes(*sign)),
                    );
                }
                Kind::Rows => {
                    num_rows += self
                        .take_rows(header, payload, keep)
                        .map_err(|reason| match reason {
                            Refusal::Damage { expected, found } => damage(path, start, expected, found),
                            Refusal::Other(error) => error,
                        })?;
                }
                Kind::End => {
                    End::new(payload, path, start)?.check(num_rows, num_tombstones, digest, path, start)?;
                    break digest;
                }
            }
        };
        let id = id(digest_of_file);
        scanner.finish()?;
        self.ledger.saved = Some(Saved { id, step: self.step });
        self.count_rows();
        if let Some(kept) = self.admission.sketch_mut() {
            // A sketch of another size cannot be carried over: counting starts anew.
            kept.restore(&sketch, header.sketch_sightings);
        }
        Ok(())
    }

    fn take_header<R: Read>(&mut self, scanner: &Scanner<'_, R>, header: &Header) -> Result<(), Error> {
        // JSON has numbers that no f32 has: they would be infinite, and could not be written again.
        let is_finite = header.history.iter().all(|run| run.1.is_finite() && run.1 >= 0.0);
        let history_fits = is_finite
            && header.history_steps <= MAX_HISTORY
            && header.history_steps <= header.step
            && header.history.is_empty() == (header.history_steps == 0)
            && header.history.first().is_none_or(|run| run.0 == 1)
            && header.history.windows(2).all(|pair| pair[0].0 < pair[1].0)
            && header
                .history
                .last()
                .is_none_or(|run| run.0 <= header.history_steps);
        if header.done > header.step || !history_fits {
            return Err(scanner.wrong(0, "steps that fit together", "steps that do not"));
        }
        self.step = header.step;
        self.done = header.done;
        self.ledger.decays = header.decays;
        if let Optimizer::Adam { beta1, beta2, .. } = self.config.optimizer {
            self.history = crate::adam::History::default();
            for &(step, rate) in &header.history {
                self.history.record(step, rate, beta1, beta2);
            }
            if let Some(&(_, rate)) = header.history.last() {
                self.history.record(header.history_steps, rate, beta1, beta2);
            }
        }
        Ok(())
    }

    fn take_rows(&mut self, header: &Header, payload: &[u8], keep: Keep<'_>) -> Result<u64, Refusal> {
        let row_bytes = self.layout.row_bytes();
        if payload.is_empty() || !payload.len().is_multiple_of(row_bytes) {
            return Err(Refusal::damage(
                format!("whole rows of {row_bytes} bytes"),
                format!("{} bytes", payload.len()),
            ));
        }
        for row in payload.chunks_exact(row_bytes) {
            let (sign, rest) = row.split_at(8);
            let (step, floats) = rest.split_at(HEAD_BYTES - 8);
            let sign = u64::from_le_bytes(sign.try_into().expect("eight bytes"));
            let step = u32::from_le_bytes(step.try_into().expect("four bytes"));
            if step > header.step {
                return Err(Refusal::damage(
                    format!("steps up to {}", header.step),
                    format!("step {step} of sign {sign}"),
                ));
            }
            if !keep(sign) {
                continue;
            }
            let hash = mix(sign);
            let bucket = &mut self.buckets[bucket_of(hash, self.bucket_bits)];
            let number = match bucket.find(sign, hash) {
                Some(_) if header.base.is_none() => {
                    return Err(Refusal::damage("every sign once", format!("sign {sign} again")));
                }
                Some(number) => number,
                None => bucket.insert(sign, hash, step).map_err(Refusal::Other)?,
            };
            let (kept_step, kept) = bucket.row_mut(number);
            *kept_step = step;
            for (kept, bytes) in kept.iter_mut().zip(floats.as_chunks::<4>().0) {
                *kept = f32::from_le_bytes(*bytes);
            }
        }
        Ok((payload.len() / row_bytes) as u64)
    }

    fn bury(&mut self, tombstones: &HashSet<u64>) -> Result<(), Error> {
        if !tombstones.is_empty() {
            for bucket in &mut self.buckets {
                bucket.remove(|bucket, row| tombstones.contains(&bucket.sign(row)))?;
            }
        }
        Ok(())
    }
}

enum Refusal {
    Damage { expected: String, found: String },
    Other(Error),
}

impl Refusal {
    fn damage(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Damage {
            expected: expected.into(),
            found: found.into(),
        }
    }
}

/// Refuses a configuration that would give stored rows another meaning.
fn compatible(config: TableConfig, stored: &TableConfig) -> Result<TableConfig, Error> {
    config.check()?;
    let kind = std::mem::discriminant::<Optimizer>;
    if config.spec != stored.spec
        || kind(&config.optimizer) != kind(&stored.optimizer)
        || config.has_statistics() != stored.has_statistics()
    {
        return Err(Error::config(
            format!("table `{}`", config.spec.name),
            format!(
                "spec, optimizer kind and statistics must be those of the stored table: {}",
                stored.to_json()
            ),
        ));
    }
    Ok(config)
}

pub(super) struct End {
    rows: u64,
    tombstones: u64,
    digest: u128,
}

impl End {
    pub(super) fn new(payload: &[u8], path: &Path, start: u64) -> Result<Self, Error> {
        let Ok(payload) = <&[u8; END_PAYLOAD]>::try_from(payload) else {
            let found = payload.len().to_string();
            return Err(damage(
                path,
                start,
                format!("an end of {END_PAYLOAD} bytes"),
                found,
            ));
        };
        let number = |from: usize| u64::from_le_bytes(std::array::from_fn(|at| payload[from + at]));
        Ok(Self {
            rows: number(0),
            tombstones: number(8),
            digest: u128::from(number(24)) << 64 | u128::from(number(16)),
        })
    }

    pub(super) fn check(
        &self,
        rows: u64,
        tombstones: u64,
        digest: u128,
        path: &Path,
        start: u64,
    ) -> Result<(), Error> {
        if (self.rows, self.tombstones) != (rows, tombstones) {
            return Err(damage(
                path,
                start,
                format!("{} rows and {} tombstones", self.rows, self.tombstones),
                format!("{rows} and {tombstones}"),
            ));
        }
        if self.digest != digest {
            return Err(damage(
                path,
                start,
                format!("digest {}", id(self.digest)),
                id(digest),
            ));
        }
        Ok(())
    }
}

pub(super) fn open(path: &Path) -> Result<BufReader<File>, Error> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    Ok(BufReader::with_capacity(1 << 18, file))
}
