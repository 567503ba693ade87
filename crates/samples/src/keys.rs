//! Names of columns as they stand in the lines of `key:value` formats.

use clickmill_types::sign;

/// Keys that the schema does not use and that are remembered for messages.
const MOST_OTHERS: usize = 256;

const EMPTY: u32 = u32::MAX;

/// What a key of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Column(u32),
    Other,
}

/// Open addressing from key to column. Keys of the schema come first; others are kept after them.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    names: Vec<Vec<u8>>,
    places: Vec<u32>,
    num_columns: usize,
    /// Whether every new key becomes a column, up to this many.
    most_columns: usize,
}

impl Keys {
    pub(crate) fn new(columns: &[String]) -> Self {
        let mut keys = Self {
            names: Vec::new(),
            places: vec![EMPTY; 64],
            num_columns: columns.len(),
            most_columns: columns.len(),
        };
        for column in columns {
            keys.insert(column.as_bytes());
        }
        keys
    }

    /// Every key that occurs becomes a column, while there are fewer than `most`.
    pub(crate) fn discovering(columns: &[String], most: usize) -> Self {
        let mut keys = Self::new(columns);
        keys.most_columns = most;
        keys
    }

    pub(crate) fn num_columns(&self) -> usize {
        self.num_columns
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.names
            .iter()
            .map(|name| String::from_utf8_lossy(name).into_owned())
    }

    pub(crate) fn find(&mut self, key: &[u8]) -> Key {
        let place = self.place(key);
        let mut index = self.places[place];
        if index == EMPTY {
            if self.num_columns < self.most_columns {
                self.num_columns += 1;
            } else if self.names.len() >= self.num_columns + MOST_OTHERS {
                return Key::Other;
            }
            index = self.insert(key);
        }
        if (index as usize) < self.num_columns {
            Key::Column(index)
        } else {
            Key::Other
        }
    }

    /// Keys that occurred and are no column.
    pub(crate) fn others(&self) -> impl Iterator<Item = &[u8]> {
        self.names[self.num_columns..].iter().map(Vec::as_slice)
    }

    pub(crate) fn num_others(&self) -> usize {
        self.names.len() - self.num_columns
    }

    fn place(&self, key: &[u8]) -> usize {
        let mask = self.places.len() - 1;
        let mut place = sign::sign(key, 0) as usize & mask;
        while self.places[place] != EMPTY && self.names[self.places[place] as usize] != key {
            place = (place + 1) & mask;
        }
        place
    }

    fn insert(&mut self, key: &[u8]) -> u32 {
        if (self.names.len() + 1) * 2 > self.places.len() {
            self.places = vec![EMPTY; self.places.len() * 2];
            for index in 0..self.names.len() {
                let place = self.place(&self.names[index]);
                self.places[place] = index as u32;
            }
        }
        let place = self.place(key);
        if self.places[place] == EMPTY {
            self.places[place] = self.names.len() as u32;
            self.names.push(key.to_vec());
        }
        self.places[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_remembered_up_to_a_limit() {
        let mut keys = Keys::new(&["a".to_owned(), "b".to_owned()]);
        assert_eq!(keys.find(b"b"), Key::Column(1));
        for other in 0..1000 {
            assert_eq!(keys.find(format!("x{other}").as_bytes()), Key::Other);
        }
        assert_eq!(keys.num_others(), MOST_OTHERS);
    }

    #[test]
    fn discovered_keys_become_columns_in_their_order() {
        let mut keys = Keys::discovering(&[], 2);
        assert_eq!(keys.find(b"p"), Key::Column(0));
        assert_eq!(keys.find(b"q"), Key::Column(1));
        assert_eq!(keys.find(b"r"), Key::Other);
        assert_eq!(keys.find(b"q"), Key::Column(1));
    }
}
