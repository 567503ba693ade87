//! Which occurrences a lookup refuses: kernels rely on them without a check of their own.

use clickmill_table::{Buffers, Error, Lookup, Occurrences, PooledSlot, Table, TableConfig};
use clickmill_types::schema::{Init, Pooling, TableSpec};

/// Of samples with one slot, over 9 rows.
fn refusal(offsets: &[u32], inverse: &[u32]) -> String {
    match Occurrences::new(offsets, inverse, 1, 9) {
        Ok(_) => "taken".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn offsets_that_leave_the_occurrences_are_refused() {
    for offsets in [&[0, 1, 3][..], &[0, 2, 1], &[0, 2, 1, 2], &[1, 2]] {
        let message = refusal(offsets, &[0, 0]);
        assert!(
            message.contains("ascend from 0 to the 2 occurrences"),
            "{offsets:?}: {message}"
        );
    }
    assert!(refusal(&[], &[]).contains("offsets need"));
    assert_eq!(refusal(&[0, 1, 2], &[0, 0]), "taken");
}

#[test]
fn offsets_that_are_no_whole_samples_are_refused() {
    let message = Occurrences::new(&[0, 1, 2, 3], &[0, 0, 0], 2, 9).map(|_| ());
    assert!(message.is_err_and(|error| error.to_string().contains("do not fit samples of 2 slots")));
}

#[test]
fn an_occurrence_of_a_row_that_is_not_there_is_refused() {
    assert!(refusal(&[0, 1, 2], &[0, 9]).contains("names row 9, but there are 9"));
    assert_eq!(refusal(&[0, 1, 2], &[0, 8]), "taken");
}

/// Of pooling one slot of a group of one slot, and of its reverse, for two samples.
fn refusals(slot: PooledSlot, num_samples: usize) -> [Option<Error>; 2] {
    let config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim: 4,
        seed: 5,
        init: Init::Zeros,
    });
    let mut table = Table::new(config).expect("a valid configuration");
    let lookup = Lookup::train(&mut table, &[7], &Buffers::default()).expect("memory");
    let occurrences = Occurrences::new(&[0, 1, 2], &[0, 0], 1, 1).expect("two samples of one row");
    let mut pooled = vec![0.0; num_samples * 4];
    [
        lookup.pool(&occurrences, 0, &[slot], &mut pooled).err(),
        lookup.unpool(&occurrences, 0, &[slot], &pooled).err(),
    ]
}

#[test]
fn slots_and_samples_that_are_not_there_are_refused() {
    let slot = |position, pooling| PooledSlot { position, pooling };
    for (slot, num_samples, message) in [
        (slot(1, Pooling::Sum), 2, "slot position 1"),
        (slot(0, Pooling::None), 2, "is a sequence"),
        (slot(0, Pooling::Sum), 3, "samples 0 to 3"),
    ] {
        for error in refusals(slot, num_samples) {
            let found = error.map_or_else(String::new, |error| error.to_string());
            assert!(found.contains(message), "`{found}` in place of `{message}`");
        }
    }
    assert!(refusals(slot(0, Pooling::Sum), 2).iter().all(Option::is_none));
}
