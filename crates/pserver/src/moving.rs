//! Buckets that move to another number of servers while training goes on.
//!
//! Those who receive buckets read their rows from a snapshot beside what they serve; at a fence they read what
//! has changed since, take the rows in, and serve by the new route.

use std::collections::HashSet;
use std::path::Path;

use clickmill_coordinator::{Job, Order, SnapshotFiles};
use clickmill_table::{Coming, TableConfig};

use crate::Error;
use crate::host::{Host, bounds, check_route, not_loaded, owner};
use crate::job::{Contents, states_of};
use crate::life::Life;
use crate::metrics::Metrics;
use crate::model::Model;
use crate::rounds::Rounds;
use crate::snapshot::{self, DenseParts};

/// Rows that were read ahead.
pub(crate) struct Prepared {
    route: Vec<u16>,
    index: u32,
    tables: Vec<Coming>,
}

/// Which rows a server receives: those of `next` that it does not have by `now`, which is empty for a new one.
struct Receiver<'a> {
    index: u32,
    now: &'a [u16],
    next: &'a [u16],
}

impl Receiver<'_> {
    fn receives(&self, sign: u64) -> bool {
        let has = !self.now.is_empty() && owner(self.now, sign) == self.index;
        owner(self.next, sign) == self.index && !has
    }

    /// Whether there is any bucket that it does not have yet.
    fn is_receiving(&self) -> bool {
        let own = |route: &[u16], bucket: usize| u32::from(route[bucket]) == self.index;
        (0..self.next.len())
            .any(|bucket| own(self.next, bucket) && (self.now.is_empty() || !own(self.now, bucket)))
    }

    fn read(
        &self,
        folder: &Path,
        files: &SnapshotFiles,
        configs: &[TableConfig],
    ) -> Result<Vec<Coming>, Error> {
        let tables = configs.iter().enumerate().map(|(number, config)| {
            let chains = snapshot::chains(folder, files, number);
            Ok(Coming::read(&chains, config, |sign| self.receives(sign))?)
        });
        tables.collect()
    }

    /// What was prepared with what has changed since; everything anew where something else was prepared.
    fn complete(
        &self,
        prepared: Option<Prepared>,
        folder: &Path,
        files: &SnapshotFiles,
        configs: &[TableConfig],
    ) -> Result<Vec<Coming>, Error> {
        if !self.is_receiving() {
            return Ok(configs.iter().map(|_| Coming::default()).collect());
        }
        let fits = |prepared: &Prepared| {
            let mut tables = prepared.tables.iter().enumerate();
            prepared.route == self.next
                && prepared.index == self.index
                && tables.all(|(number, table)| table.is_begun_by(&snapshot::chains(folder, files, number)))
        };
        let Some(mut prepared) = prepared.filter(fits) else {
            return self.read(folder, files, configs);
        };
        for (number, table) in prepared.tables.iter_mut().enumerate() {
            let chains = snapshot::chains(folder, files, number);
            table.complete(&chains, |sign| self.receives(sign))?;
        }
        Ok(prepared.tables)
    }
}

impl Host {
    /// Reads what this server is going to receive; `epoch` is the one that goes on meanwhile.
    pub(crate) fn prepare(
        &self,
        job: &Job,
        index: u32,
        epoch: u64,
        route: Vec<u16>,
        files: &SnapshotFiles,
    ) -> Result<(), Error> {
        check_route(&route, index)?;
        let contents = Contents::of(job)?;
        let serves = self.engine.with(|life| Ok(life.epoch == epoch)).unwrap_or(false);
        let now = {
            let mut state = self.lock();
            state.prepared = None;
            if !serves {
                // Whatever there is belongs to an epoch that is over.
                self.engine.end_life();
                state.contents = Some(contents.clone());
                state.route.clear();
                self.count_buckets(&[], index);
            }
            state.index = index;
            state.route.clone()
        };
        let receiver = Receiver {
            index,
            now: &now,
            next: &route,
        };
        let tables = receiver.read(&self.folder, files, &contents.configs())?;
        self.lock().prepared = Some(Prepared { route, index, tables });
        Ok(())
    }

    pub(crate) fn move_buckets(
        &self,
        index: u32,
        epoch: u64,
        route: Vec<u16>,
        files: &SnapshotFiles,
        order: &Order,
    ) -> Result<(), Error> {
        let mut state = self.lock();
        let contents = state.contents.clone().ok_or_else(not_loaded)?;
        let num_servers = check_route(&route, index)?;
        if self.engine.with(|life| Ok(life.epoch == epoch)).unwrap_or(false) {
            // The command came before, and its answer was lost.
            return Ok(());
        }
        let receiver = Receiver {
            index,
            now: &state.route.clone(),
            next: &route,
        };
        let configs = contents.configs();
        let coming = receiver.complete(state.prepared.take(), &self.folder, files, &configs)?;
        let dense = snapshot::read_dense(&self.folder, files)?;
        let slice = (index as usize, num_servers);
        self.engine.forget_sessions();
        if self.engine.is_living() {
            self.exchange_rows(&contents, coming, &dense, slice, |sign| {
                owner(&route, sign) != index
            })?;
            self.engine.with(|life| {
                life.epoch = epoch;
                life.rounds = Rounds::new(order.round, order.lanes.iter().copied(), life.rounds.fence);
                life.dead.clear();
                Ok(())
            })?;
        } else {
            self.begin_with(&contents, coming, &dense, slice, epoch, order)?;
        }
        state.saves.clear();
        state.frozen.clear();
        self.count_buckets(&route, index);
        state.index = index;
        state.route = route;
        state.is_validation = order.is_validation;
        Ok(())
    }

    /// Gives rows away and takes others in.
    fn exchange_rows(
        &self,
        contents: &Contents,
        coming: Vec<Coming>,
        dense: &DenseParts,
        (place, num_servers): (usize, usize),
        goes: impl Fn(u64) -> bool,
    ) -> Result<(), Error> {
        let bounds = bounds(contents.dense.size, num_servers);
        let slice = dense.slice(contents.dense.rule, bounds[place], bounds[place + 1])?;
        self.engine.with(|life| {
            for (table, coming) in life.model.tables.iter_mut().zip(coming) {
                table.remove_where(&goes)?;
                table.take_in(coming)?;
            }
            life.model.dense = slice;
            Ok(())
        })
    }

    /// A server that held nothing begins with what it receives.
    fn begin_with(
        &self,
        contents: &Contents,
        coming: Vec<Coming>,
        dense: &DenseParts,
        (place, num_servers): (usize, usize),
        epoch: u64,
        order: &Order,
    ) -> Result<(), Error> {
        let bounds = bounds(contents.dense.size, num_servers);
        let slice = dense.slice(contents.dense.rule, bounds[place], bounds[place + 1])?;
        let tables = coming
            .into_iter()
            .map(Coming::into_table)
            .collect::<Result<Vec<_>, _>>()?;
        let metrics = states_of(&contents.empty_metrics(order.is_validation))?;
        self.engine.begin_life(Life {
            epoch,
            model: Model::with_tables(tables, slice, dense.step),
            together: contents.together,
            is_validation: order.is_validation,
            rounds: Rounds::new(order.round, order.lanes.iter().copied(), 0),
            metrics: Metrics::from_states(&metrics)?,
            dead: HashSet::new(),
        });
        Ok(())
    }
}
