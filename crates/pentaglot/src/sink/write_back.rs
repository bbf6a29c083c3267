//! Bytes of a file go to the disk while later ones are written, so that little is left to do when it is synced.

#![allow(unsafe_code, reason = "a call of the system that only its C interface has")]

use std::fs::File;

/// Bytes after which the system is asked again.
const STEP_BYTES: u64 = 8 << 20;

/// How much of a file that grows the system has been asked to bring to the disk.
#[derive(Debug, Default)]
pub(super) struct WriteBack {
    written: u64,
    started: u64,
}

impl WriteBack {
    /// Counts bytes that were appended to the file. From time to time the system is asked to begin to bring them to the disk,
    /// which nobody waits for: only a sync says that they are there.
    pub(super) fn appended(&mut self, file: &File, bytes: usize) {
        self.written += bytes as u64;
        if self.written - self.started >= STEP_BYTES {
            start(file, self.started, self.written - self.started);
            self.started = self.written;
        }
    }
}

#[cfg(target_os = "linux")]
fn start(file: &File, offset: u64, bytes: u64) {
    use std::os::fd::AsRawFd as _;

    let (Ok(offset), Ok(bytes)) = (i64::try_from(offset), i64::try_from(bytes)) else { return };
    // SAFETY: the descriptor is open as long as the file is borrowed. The call changes neither bytes nor memory; its errors
    // are those of the sync that follows, which reports them.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE) };
}

#[cfg(not(target_os = "linux"))]
fn start(_file: &File, _offset: u64, _bytes: u64) {}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _, Write as _};

    use super::*;

    #[test]
    fn every_byte_is_asked_for_once_and_stays_as_it_is() {
        let mut file = tempfile::tempfile().unwrap();
        let mut back = WriteBack::default();
        let block = vec![7; 3 << 20];
        for blocks in 1..=7 {
            file.write_all(&block).unwrap();
            back.appended(&file, block.len());
            let written = blocks * block.len() as u64;
            assert!(back.written == written && written - back.started < STEP_BYTES, "{back:?}");
        }
        assert_eq!(back.started, 18 << 20);
        let mut read = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut read).unwrap();
        assert!(read.len() == 21 << 20 && read.iter().all(|byte| *byte == 7));
    }
}
