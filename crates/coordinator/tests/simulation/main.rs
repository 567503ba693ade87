//! The coordinator against simulated trainers and servers that die, stall, lose messages and come back.
//!
//! Every seed is one run, the same for ever. `CLICKMILL_SIMULATION_SEEDS` sets how many there are (from
//! `CLICKMILL_SIMULATION_FIRST` on).

#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not expected here is a failure, or nothing"
)]
#![expect(clippy::too_many_arguments, reason = "the fields of a frame")]
#![expect(clippy::too_many_lines, reason = "one arm for each message")]

mod chaos;
mod control;
mod disk;
mod plan;
mod processes;
mod random;
mod server;
mod serving;
mod trainer;
mod training;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use clickmill_coordinator::Strategy;
use world::World;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Runs a world to its end; a failure comes with the story that led to it.
fn play(seed: u64, strategy: Strategy, has_chaos: bool) -> World {
    let mut world = World::new(seed, strategy, has_chaos);
    let result = catch_unwind(AssertUnwindSafe(|| {
        world.run();
        world.check();
    }));
    if result.is_err() {
        let first = world.log.len().saturating_sub(120);
        let story = world.log[first..].join("\n");
        panic!("seed {seed}, {strategy:?}:\n{story}");
    }
    world
}

fn play_many(strategy: Strategy, default: u64) -> Vec<World> {
    let first = number("CLICKMILL_SIMULATION_FIRST", 0);
    let seeds = first..first + number("CLICKMILL_SIMULATION_SEEDS", default);
    seeds.map(|seed| play(seed, strategy, true)).collect()
}

#[test]
fn an_undisturbed_run_ends_with_everything_trained_once() {
    for seed in 0..60 {
        for strategy in [Strategy::Async, Strategy::Sync, Strategy::Geo] {
            play(seed, strategy, false);
        }
    }
}

#[test]
fn rows_are_evicted_and_checkpoints_published_where_the_number_of_batches_says_so() {
    // Each world checks what it does; here that there is enough to check.
    let worlds: Vec<World> = (2000..2060)
        .flat_map(|seed| [Strategy::Sync, Strategy::Async].map(|strategy| play(seed, strategy, true)))
        .collect();
    let count = |of: fn(&World) -> u64| worlds.iter().filter(|world| of(world) > 0).count();
    assert!(count(|world| world.published.len() as u64) > 10);
    assert!(count(|world| world.plan.job.evict_every) > 10);
    assert!(count(|world| world.plan.job.max_batches) > 10);
}

#[test]
fn disturbed_async_runs_end_with_everything_trained_once() {
    let worlds = play_many(Strategy::Async, 200);
    assert!(worlds.iter().map(|world| world.num_disasters).sum::<u64>() > worlds.len() as u64);
}

#[test]
fn disturbed_sync_runs_apply_the_rounds_of_an_undisturbed_one() {
    let worlds = play_many(Strategy::Sync, 200);
    assert!(worlds.iter().map(|world| world.disk.num_commits).sum::<u64>() > worlds.len() as u64);
}

#[test]
fn spares_take_the_places_of_lost_servers() {
    let worlds: Vec<World> = (3000..3100)
        .flat_map(|seed| [Strategy::Sync, Strategy::Async].map(|strategy| play(seed, strategy, true)))
        .collect();
    let count = |of: fn(&World) -> u64| worlds.iter().filter(|world| of(world) > 0).count();
    assert!(count(|world| world.num_spares_taken) > 20);
}

#[test]
fn clusters_are_scaled_while_they_train() {
    let worlds: Vec<World> = (1000..1100)
        .map(|seed| play(seed, Strategy::HalfAsync, true))
        .collect();
    assert!(worlds.iter().any(|world| world.scaled > 0));
    // And started anew as they were before.
    assert!(worlds.iter().any(|world| world.num_resized > 0));
}
