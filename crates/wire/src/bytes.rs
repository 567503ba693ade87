//! Reading and writing the pieces of a payload.

use crate::{Error, Precision};

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

    /// Numbers of `rows` rows. Rows without width would be a claim that no byte stands behind.
    pub(crate) fn matrix(
        &mut self,
        rows: u32,
        width: u32,
        precision: Precision,
        what: &'static str,
    ) -> Result<&'a [u8], Error> {
        if width == 0 && rows > 0 {
            return Err(Error::value("the width of rows", 0));
        }
        let elements = (rows as usize).checked_mul(width as usize);
        self.elements(elements.ok_or(Error::Short { what })?, precision.bytes(), what)
    }

    pub(crate) fn flag(&mut self, what: &'static str) -> Result<bool, Error> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Error::value(what, u64::from(other))),
        }
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

    /// All that has not been taken.
    pub fn rest(self) -> &'a [u8] {
        self.left
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// How many of `count` announced things of `min_bytes` or more can be there: what a list is made for, so
    /// that a number alone takes no memory.
    pub(crate) fn at_most(&self, count: u16, min_bytes: usize) -> usize {
        usize::from(count).min(self.left.len() / min_bytes)
    }

    /// Nothing may be left: a peer that says more than we understand is not understood.
    pub fn end(self) -> Result<(), Error> {
        match self.left.len() {
            0 => Ok(()),
            left => Err(Error::LeftOver { left }),
        }
    }
}

/// Memory that somebody else owns and a frame lies in for a while; it goes back when this is dropped.
pub trait Lent: std::fmt::Debug + Send + Sync {
    fn bytes(&self) -> &[u8];
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// Bytes under construction. What frames before this one left behind is overwritten, not cleared:
/// megabytes a step would be written twice for nothing.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    own: Vec<u8>,
    /// Holds the bytes instead, as long as they fit.
    lent: Option<Box<dyn Lent>>,
    end: usize,
}

impl Buffer {
    pub(crate) fn filled(&self) -> &[u8] {
        let bytes = self
            .lent
            .as_ref()
            .map_or(self.own.as_slice(), |lent| lent.bytes());
        &bytes[..self.end]
    }

    pub(crate) fn filled_mut(&mut self) -> &mut [u8] {
        let end = self.end;
        &mut self.bytes_mut()[..end]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.lent {
            Some(lent) => lent.bytes_mut(),
            None => &mut self.own,
        }
    }

    pub(crate) fn truncate(&mut self, end: usize) {
        self.end = self.end.min(end);
    }

    /// Empties it, and gives lent memory back.
    pub(crate) fn clear(&mut self) {
        self.lent = None;
        self.end = 0;
    }

    /// The first `end` bytes of lent memory, or of as much of it as there is.
    pub(crate) fn lend(&mut self, lent: Box<dyn Lent>, end: usize) {
        self.end = end.min(lent.bytes().len());
        self.lent = Some(lent);
    }

    pub(crate) fn is_lent(&self) -> bool {
        self.lent.is_some()
    }

    /// Bytes that were taken from the system so far.
    pub(crate) fn capacity(&self) -> usize {
        self.own.len()
    }

    /// `count` more bytes, which hold anything.
    #[inline]
    pub(crate) fn grow(&mut self, count: usize) -> &mut [u8] {
        let begin = self.end;
        self.end += count;
        let end = self.end;
        if end > self.bytes_mut().len() {
            self.enlarge(begin);
        }
        &mut self.bytes_mut()[begin..end]
    }

    #[cold]
    fn enlarge(&mut self, filled: usize) {
        let lent = self.lent.take();
        if self.end > self.own.len() {
            self.own.reserve(self.end - self.own.len());
            // All that the allocator gave, so that small pieces do not come here one by one.
            self.own.resize(self.own.capacity(), 0);
        }
        if let Some(lent) = lent {
            self.own[..filled].copy_from_slice(&lent.bytes()[..filled]);
        }
    }
}

/// Appends pieces to a payload.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Buffer,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Buffer) -> Self {
        Self { out }
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn f32(&mut self, value: f32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn bytes(&mut self, value: &[u8]) {
        self.room(value.len()).copy_from_slice(value);
    }

    pub fn f32s(&mut self, values: impl ExactSizeIterator<Item = f32>) {
        let (room, _) = self.room(values.len() * 4).as_chunks_mut();
        for (bytes, value) in room.iter_mut().zip(values) {
            *bytes = value.to_le_bytes();
        }
    }

    pub fn u64s(&mut self, values: impl ExactSizeIterator<Item = u64>) {
        let (room, _) = self.room(values.len() * 8).as_chunks_mut();
        for (bytes, value) in room.iter_mut().zip(values) {
            *bytes = value.to_le_bytes();
        }
    }

    /// A length that was counted in memory of this process.
    pub fn length(&mut self, value: usize) {
        self.u32(u32::try_from(value).expect("no array of a batch has 2^32 elements"));
    }

    /// Room for `count` bytes, which hold anything until the caller has filled all of them.
    pub fn room(&mut self, count: usize) -> &mut [u8] {
        self.out.grow(count)
    }
}
