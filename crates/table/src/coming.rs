//! Rows that move here from other servers: read while these still train them, completed at a fence, taken in.

use std::path::{Path, PathBuf};

use crate::parts::last;
use crate::{Error, Table, TableConfig};

/// The rows of one table that are on their way, by the part that they come from.
#[derive(Default)]
pub struct Coming {
    parts: Vec<(Vec<PathBuf>, Table)>,
}

impl Coming {
    /// Reads the rows for whose sign `keep` holds; `chains` has, for each part, what [`Table::load`] takes.
    pub fn read(
        chains: &[Vec<PathBuf>],
        config: &TableConfig,
        keep: impl Fn(u64) -> bool,
    ) -> Result<Self, Error> {
        let read = |chain: &Vec<PathBuf>| {
            let part = Table::load_chain(chain, Some(config.clone()), &keep)?;
            Ok((chain.clone(), part))
        };
        Ok(Self {
            parts: chains.iter().map(read).collect::<Result<_, Error>>()?,
        })
    }

    /// Whether `chains` are those that were read, with increments behind them or without.
    pub fn is_begun_by(&self, chains: &[Vec<PathBuf>]) -> bool {
        let pairs = self.parts.iter().zip(chains);
        self.parts.len() == chains.len()
            && pairs
                .into_iter()
                .all(|((read, _), chain)| chain.starts_with(read))
    }

    /// Reads the increments that have come behind what was read, by the same `keep`.
    pub fn complete(&mut self, chains: &[Vec<PathBuf>], keep: impl Fn(u64) -> bool) -> Result<(), Error> {
        if !self.is_begun_by(chains) {
            return Err(Error::argument("these are not the parts that were read"));
        }
        for ((read, part), chain) in self.parts.iter_mut().zip(chains) {
            part.extend_chain(&chain[read.len()..], &keep)?;
            read.clone_from(chain);
        }
        Ok(())
    }

    /// A table of these rows alone.
    pub fn into_table(mut self) -> Result<Table, Error> {
        if self.parts.is_empty() {
            return Err(Error::argument("no part to make a table of"));
        }
        let (chain, mut table) = self.parts.remove(0);
        table.take_parts(self.parts, last(&chain))?;
        table.ledger.forget();
        Ok(table)
    }
}

impl Table {
    /// Takes in rows that are at the fence that this table is at; gives their number.
    ///
    /// The next save after it must be a full one.
    pub fn take_in(&mut self, coming: Coming) -> Result<u64, Error> {
        self.check_no_save()?;
        let added = self.take_parts(coming.parts, Path::new("the table"))?;
        if added > 0 {
            self.ledger.forget();
        }
        Ok(added)
    }

    fn take_parts(&mut self, parts: Vec<(Vec<PathBuf>, Self)>, own: &Path) -> Result<u64, Error> {
        let mut added = 0;
        for (chain, part) in parts {
            let names = [own, last(&chain)];
            self.check_fence(&part, names)?;
            added += self.absorb(part, names)?;
        }
        Ok(added)
    }
}
