//! Reading and writing the pieces of a payload.

use crate::Error;

/// Takes pieces off the front; every length is checked first.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Error> {
        let (taken, left) = self.left.split_at_checked(count).ok_or(Error::Short { what })?;
        self.left = left;
        Ok(taken)
    }

    /// `count` elements of `size` bytes each.
    pub fn elements(&mut self, count: usize, size: usize, what: &'static str) -> Result<&'a [u8], Error> {
        let length = count.checked_mul(size).ok_or(Error::Short { what })?;
        self.bytes(length, what)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Error> {
        let taken = self.bytes(N, what)?;
        Ok(taken.try_into().expect("as many bytes as were asked for"))
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8, Error> {
        Ok(u8::from_le_bytes(self.array(what)?))
    }

    pub fn u16(&mut self, what: &'static str) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub fn u64(&mut self, what: &'static str) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    pub fn f32(&mut self, what: &'static str) -> Result<f32, Error> {
        Ok(f32::from_le_bytes(self.array(what)?))
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Nothing may be left: a peer that says more than we understand is not understood.
    pub fn end(self) -> Result<(), Error> {
        match self.left.len() {
            0 => Ok(()),
            left => Err(Error::LeftOver { left }),
        }
    }
}

/// Appends pieces to a payload.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    pub fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub fn f32(&mut self, value: f32) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub fn bytes(&mut self, value: &[u8]) {
        self.out.extend_from_slice(value);
    }

    /// A length that was counted in memory of this process.
    pub fn length(&mut self, value: usize) {
        self.u32(u32::try_from(value).expect("no array of a batch has 2^32 elements"));
    }

    /// Room for `count` bytes, to be filled by the caller.
    pub fn room(&mut self, count: usize) -> &mut [u8] {
        let begin = self.out.len();
        self.out.resize(begin + count, 0);
        &mut self.out[begin..]
    }
}
