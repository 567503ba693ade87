//! Blocks of rows are made and compressed by threads and written in order by the caller.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use crossbeam_channel::{Receiver, Sender, unbounded};
use serde::Serialize;

use super::format::Writer;
use super::model::{Model, probability};
use super::output::{Compression, Output};
use super::truth::Truth;
use super::{Config, Error};

/// Rows of one block: about 4 MB of text.
const BLOCK_ROWS: u64 = 16_384;
/// Blocks per thread that may be under way or wait for their turn.
const BLOCKS_AHEAD: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub rows: u64,
    pub total_rows: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub rows: u64,
    pub positives: u64,
    /// Share of clicked rows.
    pub click_rate: f64,
    /// AUC of the true probability over exactly these rows: no model can be expected to score higher.
    pub bayes_auc: f64,
    pub bayes_logloss: f64,
    /// Size of the files, as compressed.
    pub bytes: u64,
    pub files: Vec<String>,
}

/// A block of rows of one file.
struct Task {
    index: usize,
    rows: Range<u64>,
}

struct Block {
    index: usize,
    text: std::io::Result<Vec<u8>>,
    /// Step and label of each row.
    truth: Vec<(u16, bool)>,
}

/// Writes the log; `progress` hears of each block and may stop the work, which then leaves no file behind.
pub fn write(
    config: &Config,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Report, Error> {
    config.check()?;
    let model = Model::new(config.seed, config.drift);
    let writer = Writer::new(config.format);
    let compression = Compression::of(&config.path);
    let files = config.files();
    // (file, rows) of every block: blocks never reach over the end of a file.
    let blocks: Vec<(usize, Range<u64>)> = files
        .iter()
        .enumerate()
        .flat_map(|(file, (_, rows))| split(rows).map(move |block| (file, block)))
        .collect();

    let (send_task, tasks) = unbounded::<Task>();
    let (send_block, done) = unbounded::<Block>();
    std::thread::scope(|scope| {
        for _ in 0..config.num_threads() {
            let (tasks, send_block) = (tasks.clone(), send_block.clone());
            let (model, writer) = (&model, &writer);
            scope.spawn(move || make_blocks(model, writer, compression, &tasks, &send_block));
        }
        drop(send_block);
        let report = collect(config, &blocks, &send_task, &done, progress);
        // The threads end when nothing more can come or go.
        drop((send_task, done));
        report
    })
}

fn split(rows: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let end = rows.end;
    (rows.start..end)
        .step_by(BLOCK_ROWS as usize)
        .map(move |start| start..end.min(start + BLOCK_ROWS))
}

fn make_blocks(
    model: &Model,
    writer: &Writer,
    compression: Compression,
    tasks: &Receiver<Task>,
    done: &Sender<Block>,
) {
    for task in tasks {
        let num_rows = (task.rows.end - task.rows.start) as usize;
        let mut text = Vec::with_capacity(num_rows * 280);
        let mut truth = Vec::with_capacity(num_rows);
        for number in task.rows {
            let row = model.row(number);
            writer.append(&row, &mut text);
            truth.push((row.step, row.clicked));
        }
        let block = Block {
            index: task.index,
            text: compression.block(text),
            truth,
        };
        if done.send(block).is_err() {
            // The writer has stopped on an error of its own.
            return;
        }
    }
}

fn collect(
    config: &Config,
    blocks: &[(usize, Range<u64>)],
    send_task: &Sender<Task>,
    done: &Receiver<Block>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Report, Error> {
    let files = config.files();
    let mut outputs = Vec::with_capacity(files.len());
    let mut truth_output = config.truth_path.as_deref().map(Output::create).transpose()?;
    let mut truth = Truth::new();
    let mut waiting = BTreeMap::new();
    let mut rows_done = 0;
    let submit = |index: usize| {
        if let Some((_, rows)) = blocks.get(index) {
            let rows = rows.clone();
            send_task
                .send(Task { index, rows })
                .expect("the threads end only after the last task");
        }
    };
    let ahead = config.num_threads() * BLOCKS_AHEAD;
    (0..ahead).for_each(submit);
    for (index, (file, rows)) in blocks.iter().enumerate() {
        while !waiting.contains_key(&index) {
            let block = done.recv().expect("every task is answered by a block");
            waiting.insert(block.index, block);
        }
        let Some(block) = waiting.remove(&index) else {
            continue;
        };
        submit(index + ahead);
        if *file == outputs.len() {
            outputs.push(Output::create(&files[*file].0)?);
        }
        let text = block.text.map_err(|source| Error::io(&files[*file].0, source))?;
        outputs[*file].write(&text)?;
        for &(step, clicked) in &block.truth {
            truth.add(step, clicked);
        }
        if let Some(output) = &mut truth_output {
            output.write(truth_lines(&block.truth).as_bytes())?;
        }
        rows_done += rows.end - rows.start;
        let step = Progress {
            rows: rows_done,
            total_rows: config.rows,
        };
        if progress(step).is_break() {
            return Err(Error::Cancelled { rows: rows_done });
        }
    }
    let mut bytes = 0;
    for output in outputs {
        bytes += output.publish()?;
    }
    truth_output.map(Output::publish).transpose()?;
    Ok(Report {
        rows: config.rows,
        positives: truth.positives(),
        click_rate: truth.positives() as f64 / config.rows as f64,
        bayes_auc: truth.auc(),
        bayes_logloss: truth.log_loss(),
        bytes,
        files: files
            .into_iter()
            .map(|(path, _)| path.display().to_string())
            .collect(),
    })
}

fn truth_lines(truth: &[(u16, bool)]) -> String {
    use std::fmt::Write as _;
    truth.iter().fold(String::new(), |mut text, &(step, _)| {
        writeln!(text, "{}", probability(step)).expect("a string takes every character");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;

    use super::*;
    use crate::synth::Format;

    fn proceed(_: Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn text(config: &Config) -> Vec<u8> {
        write(config, &mut proceed).expect("the folder is writable");
        fs::read(&config.path).expect("the log has been published")
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    #[test]
    fn threads_do_not_change_a_byte() {
        let folder = folder();
        for name in ["log.tsv", "log.tsv.gz", "log.tsv.zst"] {
            let one = Config {
                threads: 1,
                ..Config::new(folder.path().join(name), 40_000)
            };
            let five = Config {
                threads: 5,
                ..one.clone()
            };
            assert!(text(&one) == text(&five), "{name}");
        }
    }

    #[test]
    fn two_ranges_are_the_whole() {
        let folder = folder();
        let path = folder.path().join("log.tsv");
        let whole = text(&Config::new(&path, 20_000));
        let mut joined = text(&Config::new(&path, 7_001));
        joined.extend(text(&Config {
            start_row: 7_001,
            ..Config::new(&path, 12_999)
        }));
        assert!(whole == joined);
    }

    #[test]
    fn parts_and_compressed_files_hold_the_same_rows() {
        let folder = folder();
        let whole = text(&Config::new(folder.path().join("log.tsv"), 40_000));
        let mut parts = Vec::new();
        let config = Config {
            parts: 3,
            ..Config::new(folder.path().join("log.tsv.gz"), 40_000)
        };
        let report = write(&config, &mut proceed).expect("the folder is writable");
        for file in &report.files {
            let file = fs::File::open(file).expect("the part has been published");
            flate2::read::MultiGzDecoder::new(file)
                .read_to_end(&mut parts)
                .expect("valid gzip");
        }
        assert!(whole == parts);
        let packed = text(&Config::new(folder.path().join("log.tsv.zst"), 40_000));
        assert!(whole == zstd::stream::decode_all(packed.as_slice()).expect("valid zstd"));
    }

    #[test]
    fn the_report_counts_what_was_written() {
        let folder = folder();
        let config = Config::new(folder.path().join("log.tsv"), 30_000);
        let mut heard = Vec::new();
        let report = write(&config, &mut |step| {
            heard.push(step.rows);
            ControlFlow::Continue(())
        })
        .expect("the folder is writable");
        let text = fs::read_to_string(&config.path).expect("the log has been published");
        assert_eq!(report.rows, text.lines().count() as u64);
        assert_eq!(
            report.positives,
            text.lines().filter(|line| line.starts_with('1')).count() as u64
        );
        assert_eq!(report.bytes, text.len() as u64);
        assert_eq!(heard, [16_384, 30_000]);
        assert!(report.bayes_auc > 0.7 && report.bayes_auc < 0.95);
    }

    #[test]
    fn a_cancelled_run_leaves_the_old_file_and_nothing_else() {
        let folder = folder();
        let config = Config::new(folder.path().join("log.tsv"), 40_000);
        fs::write(&config.path, "old").expect("the folder is writable");
        let result = write(&config, &mut |_| ControlFlow::Break(()));
        assert!(matches!(result, Err(Error::Cancelled { rows: 16_384 })));
        assert_eq!(fs::read(&config.path).expect("still there"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn every_format_has_a_line_for_each_row() {
        let folder = folder();
        for format in [Format::Criteo, Format::Slots, Format::MultiSlot] {
            let config = Config {
                format,
                ..Config::new(folder.path().join("log.txt"), 500)
            };
            assert_eq!(text(&config).split(|&byte| byte == b'\n').count(), 501);
        }
    }
}
