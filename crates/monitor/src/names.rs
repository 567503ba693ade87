//! Names of metrics and labels: `clickmill_<part>_<what>_<unit>`, counters end in `_total`.

use crate::Error;

const PREFIX: &str = "clickmill_";
pub(crate) const TOTAL: &str = "_total";

fn is_word(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(is_letter)
}

pub(crate) fn check(name: &str, is_counter: bool, labels: &[(&str, &str)]) -> Result<(), Error> {
    if !is_word(name) || !name.starts_with(PREFIX) || name.split('_').any(str::is_empty) {
        return Err(Error::metric(name, "a name is `clickmill_<part>_<what>_<unit>`"));
    }
    if is_counter != name.ends_with(TOTAL) {
        return Err(Error::metric(name, "counters, and no others, end in `_total`"));
    }
    for (label, _) in labels {
        if !is_word(label) || *label == "le" {
            return Err(Error::metric(name, format!("`{label}` cannot be a label")));
        }
    }
    Ok(())
}
