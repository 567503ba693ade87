//! Table files to start from, and checksums that fit again after the fuzzer has changed a file.

use std::sync::LazyLock;

use clickmill_table::config::{Admission, Optimizer, ShowClick};
use clickmill_table::{Rate, Table, TableConfig};
use clickmill_types::schema::{Init, TableSpec};

const DIM: usize = 2;

/// Bytes before the JSON of the header.
const HEAD: usize = 16;

fn config(optimizer: Optimizer) -> TableConfig {
    let mut config = TableConfig::new(TableSpec {
        name: "t".to_owned(),
        dim: DIM as u32,
        seed: 5,
        init: Init::Normal { std: 0.1 },
    });
    config.bucket_bits = 1;
    config.optimizer = optimizer;
    config.admission = Admission::Count {
        at: 1,
        sketch_bits: 8,
    };
    config.eviction.show_click = Some(ShowClick {
        show_coefficient: 0.1,
        click_coefficient: 1.0,
        decay: 0.9,
        threshold: 0.3,
    });
    config
}

fn train(table: &mut Table, step: u64, signs: &[u64]) {
    table.begin_step(step).expect("steps ascend");
    let mut values = vec![0.0; signs.len() * DIM];
    table.pull(signs, &mut values).expect("memory");
    let shows = vec![1.0; signs.len()];
    let rate = Rate {
        learning_rate: 0.1 / step as f32,
        scale: 1.0,
    };
    table
        .push(signs, &values, &shows, &shows, rate)
        .expect("a push of the right shape");
}

fn trained(optimizer: Optimizer) -> Table {
    let mut table = Table::new(config(optimizer)).expect("a valid configuration");
    train(&mut table, 1, &[1, 2, 3]);
    train(&mut table, 2, &[3, 4]);
    table
}

/// Small tables of two optimizers, as files.
pub fn table_bytes() -> [Vec<u8>; 2] {
    [Optimizer::default(), adam()].map(|optimizer| trained(optimizer).to_bytes())
}

fn adam() -> Optimizer {
    Optimizer::Adam {
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weight_decay: 0.01,
    }
}

/// The table that increments are tried on.
pub fn base_table() -> Table {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| trained(adam()).to_bytes());
    Table::from_bytes(&BYTES, "base".as_ref(), None).expect("our own file")
}

/// An increment on [`base_table`], with tombstones, decays and a row that is new.
pub fn increment() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut table = trained(adam());
    let base = table
        .save(&folder.path().join("base"), None)
        .expect("the folder takes files");
    for step in 3..15 {
        train(&mut table, step, &[4, 9]);
        table.evict().expect("memory");
    }
    let path = folder.path().join("increment");
    table.save(&path, Some(&base.id)).expect("the folder takes files");
    std::fs::read(path).expect("it was written")
}

/// Sets the length of the header to that of its JSON, and all checksums that the lengths of the parts leave
/// room for: they would hide what lies behind them.
pub fn mend(bytes: &mut [u8]) {
    if let Some(length) = bytes.get(HEAD..).and_then(json_length) {
        bytes[HEAD - 4..HEAD].copy_from_slice(&length.to_le_bytes());
    }
    let number = |bytes: &[u8], at: usize| {
        bytes
            .get(at..at + 4)
            .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]) as usize)
    };
    let mut start = 0;
    let mut head = HEAD;
    while let Some(length) = number(bytes, start + head - 4) {
        let end = start.saturating_add(head).saturating_add(length);
        if end.checked_add(4).is_none_or(|end| end > bytes.len()) {
            return;
        }
        if head == 8 && bytes[start] == b'F' && length == 32 {
            let digest = xxhash_rust::xxh3::xxh3_128(&bytes[..start]);
            bytes[end - 16..end].copy_from_slice(&digest.to_le_bytes());
        }
        let crc = crc32fast::hash(&bytes[start..end]);
        bytes[end..end + 4].copy_from_slice(&crc.to_le_bytes());
        start = end + 4;
        head = 8;
    }
}

/// Bytes up to the brace that closes the first one; strings of ours hold no braces.
fn json_length(text: &[u8]) -> Option<u32> {
    let mut depth = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth <= 0 {
            return u32::try_from(at + 1).ok();
        }
    }
    None
}
