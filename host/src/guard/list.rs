//! The list of the calls in flight, which the host writes and its guard reads at the end.
//!
//! It is a file in memory that both have open. Telling the guard of each call by its socket would wake it twice for each, on a processor that
//! the command needs at that moment; so nothing is said, and the guard looks when the host is gone. A call has a place of fixed length: a host that is
//! killed while it writes has written it, or has not.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, memfd_create};

/// Bytes of a place: the length of a call's id, and the id.
const PLACE: usize = 256;

/// What is said of an id that has no room: its length is a byte.
const TOO_LONG: &str = "its id is longer than 255 bytes";

/// The list, from the host's side.
#[derive(Debug)]
pub(super) struct List {
    file: File,
    /// Who stands at each place.
    places: Vec<Option<String>>,
}

impl List {
    pub(super) fn new() -> io::Result<Self> {
        let file = File::from(memfd_create("hostel-calls", MemfdFlags::CLOEXEC)?);
        Ok(Self { file, places: Vec::new() })
    }

    /// The file, for a guard.
    pub(super) fn shared(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Enters a call, whose id has at most 255 bytes, and returns its place.
    pub(super) fn enter(&mut self, call: &str) -> io::Result<usize> {
        let place = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        let length = u8::try_from(call.len()).map_err(|_| io::Error::other(TOO_LONG))?;
        let mut bytes = Vec::with_capacity(1 + call.len());
        bytes.push(length);
        bytes.extend_from_slice(call.as_bytes());
        self.file.write_all_at(&bytes, offset(place))?;
        if place == self.places.len() {
            self.places.push(None);
        }
        self.places[place] = Some(call.to_owned());
        Ok(place)
    }

    /// Takes out who stands at `place`.
    pub(super) fn leave(&mut self, place: usize) {
        // Memory that was written once can be written again; and what stays there is over, and is not found.
        let _ = self.file.write_all_at(&[0], offset(place));
        if let Some(place) = self.places.get_mut(place) {
            *place = None;
        }
    }

    /// Takes out all.
    pub(super) fn clear(&mut self) {
        (0..self.places.len()).for_each(|place| self.leave(place));
    }

    /// The ids of all that are in flight.
    pub(super) fn in_flight(&self) -> Vec<String> {
        self.places.iter().flatten().cloned().collect()
    }
}

fn offset(place: usize) -> u64 {
    (place * PLACE) as u64
}

/// Reads the ids out of a host's list.
pub(super) fn read(mut list: File) -> io::Result<Vec<String>> {
    let mut bytes = Vec::new();
    // Host and guard share the position.
    list.seek(SeekFrom::Start(0))?;
    list.read_to_end(&mut bytes)?;
    let ids = bytes.chunks(PLACE).filter_map(|place| {
        let (length, id) = place.split_first()?;
        let id = id.get(..usize::from(*length))?;
        String::from_utf8(id.to_vec()).ok().filter(|id| !id.is_empty())
    });
    Ok(ids.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(list: &List) -> Vec<String> {
        read(list.file.try_clone().unwrap()).unwrap()
    }

    #[test]
    fn who_is_in_flight_is_found_and_nobody_else() {
        let mut list = List::new().unwrap();
        assert_eq!(seen(&list), [""; 0]);
        let places: Vec<usize> = ["one", "two", "three"].map(|call| list.enter(call).unwrap()).into();
        assert_eq!(seen(&list), ["one", "two", "three"]);
        list.leave(places[1]);
        assert_eq!(seen(&list), ["one", "three"]);
        // A shorter one in the place of a longer one.
        assert_eq!(list.enter("2").unwrap(), places[1]);
        assert_eq!(seen(&list), ["one", "2", "three"]);
        assert_eq!(list.in_flight(), seen(&list));
        list.clear();
        assert_eq!(seen(&list), [""; 0]);
        let longest = "x".repeat(PLACE - 1);
        list.enter(&longest).unwrap();
        assert_eq!(seen(&list), [longest.as_str()]);
        assert!(list.enter(&"x".repeat(PLACE)).is_err());
    }
}
