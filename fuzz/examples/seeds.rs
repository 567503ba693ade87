//! Writes the inputs that the fuzzers start from: `seeds FOLDER` makes `FOLDER/<target>/<number>`.

use std::path::Path;

use clickmill_fuzz::{frame_seeds, hello_seeds, increment, rows_seeds, step_seeds, table_bytes};

const CSV: &[&str] = &[
    "1,0.5,a|b|c,17\n0,-3,,\n",
    "1,\"0.5,2\",\"a \"\"quoted\"\" | text\",18446744073709551615\r\n\n0,1e3,\u{4f60}\u{597d},0\n",
];

const DELIMITED: &[&str] = &[
    "1||0.5||a|b||17\n0||-3||||\r\n",
    "1||1e3||a|b|c|d||0\n\n0||||x||9",
];

const LIBSVM: &[&str] = &[
    "1 1:0.5,2 qid:7 # a comment\n0 qid:1 3:1 5:1\n",
    "-1 1:7\n\n1\n+1 2:1 3:1\r\n",
];

const MOVIELENS: &[&str] = &[
    "1::1::5::978300760\n",
    "1::1::3.5::0\r\n\n2::1::1::9\n1::7::1::9\n",
];

const SHOW_CLICK: &[&str] = &["5 1 17:1 42:2\n1 0 18446744073709551615:2 3:1 4:1 9:9\n"];

const SLOTS: &[&str] = &[
    "y:1 n:0.5,2 s:a|b v:17\n",
    "v:18446744073709551615 s:x:y s:z\ty:0  n:-3\r\n\nother:1 y:1 n: s:\n",
];

fn criteo() -> Vec<Vec<u8>> {
    let full: Vec<String> = (0..40).map(|column| column.to_string()).collect();
    let line = full.join("\t");
    let empty = "\t".repeat(39);
    [
        format!("{line}\n"),
        format!("1{empty}\r\n0{empty}\n"),
        format!("{line}\n\n{}\n{line}", line.replace('3', "-0.25")),
    ]
    .map(String::into_bytes)
    .to_vec()
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn main() {
    let folder = std::env::args().nth(1).expect("the folder to write to");
    for (target, seeds) in [
        ("criteo", criteo()),
        ("csv", texts(CSV)),
        ("delimited", texts(DELIMITED)),
        ("libsvm", texts(LIBSVM)),
        ("movielens", texts(MOVIELENS)),
        ("show_click", texts(SHOW_CLICK)),
        ("slots", texts(SLOTS)),
        ("table_file", table_bytes().to_vec()),
        ("table_increment", vec![increment()]),
        ("wire_frame", frame_seeds()),
        ("wire_hello", hello_seeds()),
        ("wire_rows", rows_seeds()),
        ("wire_step", step_seeds()),
    ] {
        let place = Path::new(&folder).join(target);
        std::fs::create_dir_all(&place).expect("the folder can be made");
        for (number, seed) in seeds.iter().enumerate() {
            std::fs::write(place.join(number.to_string()), seed).expect("the folder takes files");
        }
    }
}
