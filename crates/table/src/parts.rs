//! Tables that are spread over servers: each has the rows of some signs, and saves them as a part.
//!
//! Parts of one fence make one table again, or other parts: rows go where their signs belong. A save knows
//! nothing of rows that came or went this way, so that the next one after it must be a full one.

use std::cell::Cell;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use clickmill_types::sign::mix;

use crate::table::bucket_of;
use crate::{Coming, Error, Table, TableConfig};

impl Table {
    /// The rows of all parts for whose sign `keep` holds; `chains` has, for each part, what [`Table::load`]
    /// takes.
    ///
    /// Parts must be of one fence (steps, decays and learning rates agree) and of tables alike; no sign may be in
    /// two of them. Admission counts of all parts are merged, whoever may see a sign next. Only a table that is
    /// the whole of one chain can be the base of an increment.
    pub fn load_parts(
        chains: &[Vec<PathBuf>],
        config: Option<&TableConfig>,
        keep: impl Fn(u64) -> bool,
    ) -> Result<Self, Error> {
        let Some((first, others)) = chains.split_first() else {
            return Err(Error::argument("no part to load"));
        };
        let is_whole = Cell::new(true);
        let keep = |sign| {
            let is_kept = keep(sign);
            is_whole.set(is_whole.get() && is_kept);
            is_kept
        };
        let mut table = Self::load_chain(first, config.cloned(), &keep)?;
        for chain in others {
            let part = Self::load_chain(chain, config.cloned(), &keep)?;
            let names = [last(first), last(chain)];
            table.check_fence(&part, names)?;
            table.absorb(part, names)?;
        }
        if !others.is_empty() || !is_whole.get() {
            table.ledger.forget();
        }
        Ok(table)
    }

    /// Adds the rows of `load_parts`, which are of the fence that this table is at; gives their number.
    ///
    /// After an error of the first of them the table is as it was before.
    pub fn extend_from_parts(
        &mut self,
        chains: &[Vec<PathBuf>],
        keep: impl Fn(u64) -> bool,
    ) -> Result<u64, Error> {
        let coming = Coming::read(chains, &self.config, keep)?;
        self.take_in(coming)
    }

    /// Removes the rows of signs that belong elsewhere from now on; gives their number.
    ///
    /// They live on, so there are no tombstones of them. Lookups made before can no longer be applied.
    pub fn remove_where(&mut self, goes: impl Fn(u64) -> bool) -> Result<u64, Error> {
        self.check_no_save()?;
        let removed = self.remove_rows(|bucket, row| goes(bucket.sign(row)))?;
        if removed > 0 {
            self.generation += 1;
            self.ledger.forget();
        }
        Ok(removed)
    }

    /// Moves the rows of `part` here; its file and that of the rows at hand are named in errors.
    pub(crate) fn absorb(&mut self, mut part: Self, [own, other]: [&Path; 2]) -> Result<u64, Error> {
        for bucket in &part.buckets {
            for row in 0..bucket.len() {
                let (sign, hash) = (bucket.sign(row), mix(bucket.sign(row)));
                if self.buckets[bucket_of(hash, self.bucket_bits)]
                    .find(sign, hash)
                    .is_some()
                {
                    return Err(disagreement(
                        other,
                        "every sign in one part".to_owned(),
                        format!("sign {sign}, which is in {} too", own.display()),
                    ));
                }
            }
        }
        if let (Some(sketch), Some(other)) = (self.admission.sketch_mut(), part.admission.sketch()) {
            sketch.absorb(other);
        }
        let added = part.len();
        // One bucket after the other is given back, so that rows are hardly ever in memory twice.
        for bucket in std::mem::take(&mut part.buckets) {
            for row in 0..bucket.len() {
                let (sign, hash) = (bucket.sign(row), mix(bucket.sign(row)));
                let target = &mut self.buckets[bucket_of(hash, self.bucket_bits)];
                let new = target.insert(sign, hash, bucket.step(row))?;
                target.row_mut(new).1.copy_from_slice(bucket.floats(row));
            }
        }
        self.count_rows();
        Ok(added)
    }

    /// Refuses a part of another fence, or of a table of another kind.
    pub(crate) fn check_fence(&self, part: &Self, names: [&Path; 2]) -> Result<(), Error> {
        let kind = |table: &Self| {
            let config = &table.config;
            (
                config.spec.clone(),
                config.optimizer,
                config.admission,
                config.has_statistics(),
            )
        };
        agree(
            names,
            "spec, optimizer, admission and statistics",
            &kind(self),
            &kind(part),
        )?;
        agree(names, "step", &self.step, &part.step)?;
        agree(names, "last step that is over", &self.done, &part.done)?;
        agree(
            names,
            "number of decays",
            &self.ledger.decays,
            &part.ledger.decays,
        )?;
        let rates = |table: &Self| (table.history.len(), table.history.runs().to_vec());
        agree(names, "learning rates", &rates(self), &rates(part))
    }
}

fn agree<T: PartialEq + Debug>(
    [own, other]: [&Path; 2],
    what: &str,
    expected: &T,
    found: &T,
) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    Err(disagreement(
        other,
        format!("the {what} of {}: {expected:?}", own.display()),
        format!("{found:?}"),
    ))
}

fn disagreement(file: &Path, expected: String, found: String) -> Error {
    Error::Format {
        file: file.to_owned(),
        offset: 0,
        expected,
        found,
    }
}

/// The file that says what a chain is at.
pub(crate) fn last(chain: &[PathBuf]) -> &Path {
    chain.last().map_or(Path::new(""), PathBuf::as_path)
}
