//! An upload that appears whole or not at all.
//!
//! Up to 5 MiB are sent by one request, which the store refuses if there is such an object already (unless it may be
//! replaced). More goes up in parts, which the store puts together at the end or throws away. No store takes a condition
//! for that; so whether there is such an object is asked before the first part and again before the parts are put
//! together. Between that answer and the end another writer can still create the object, and is then replaced.
//! Behind HTTP nothing takes a condition, and nothing takes parts.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use object_store::{Error as Stored, MultipartUpload, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use pentaglot::sink::Output;
use pentaglot::{Error, ErrorKind, Hint, Result};
use tokio::task::JoinHandle;

use crate::Place;
use crate::fault::Fault;

/// What one request sends at most.
const SINGLE: usize = 5 << 20;
/// The size of a part, and of one behind the first [`SMALL_PARTS`]: stores take up to 10,000.
const PART: usize = 8 << 20;
const LARGE_PART: usize = 64 << 20;
const SMALL_PARTS: usize = 2_000;
/// How many parts are under way at a time.
const AT_A_TIME: usize = 4;

/// An object that is being written.
pub(crate) struct Upload {
    place: Place,
    force: bool,
    waiting: Vec<u8>,
    parts: Option<Parts>,
    /// Complete side objects, which are committed just before this one.
    siblings: Waiting,
    removals: Vec<Place>,
    /// Where this one waits, if it is a side object.
    main: Option<Waiting>,
}

type Waiting = Arc<Mutex<Vec<Upload>>>;

/// The parts of a large object.
struct Parts {
    upload: Box<dyn MultipartUpload>,
    under_way: VecDeque<JoinHandle<object_store::Result<()>>>,
    count: usize,
}

impl Upload {
    /// An object that will be at `place`; an existing one is replaced with `force` only.
    pub(crate) fn create(place: Place, force: bool) -> Result<Self> {
        if place.path.as_ref().is_empty() {
            return Err(Error::usage("expected the name of an object to write, found none"));
        }
        if !force && place.look().map_err(|fault| fault.doing("cannot write"))?.is_some() {
            return Err(exists());
        }
        Ok(Upload {
            place,
            force,
            waiting: Vec::new(),
            parts: None,
            siblings: Waiting::default(),
            removals: Vec::new(),
            main: None,
        })
    }

    fn fault(&self, error: Stored) -> io::Error {
        Fault::new(&self.place.address, error).doing("cannot write").into()
    }

    /// Sends what waits as the next part.
    fn send_part(&mut self) -> io::Result<()> {
        let stores = self.place.stores.clone();
        if self.parts.is_none() {
            let upload = stores.wait(async { self.place.store()?.put_multipart(&self.place.path).await });
            let upload = upload.map_err(|error| match error {
                Stored::NotImplemented { .. } => {
                    let text = format!("more than {} MiB cannot be written behind HTTP", SINGLE >> 20);
                    Error::new(ErrorKind::Unsupported, text).into()
                }
                error => self.fault(error),
            })?;
            self.parts = Some(Parts { upload, under_way: VecDeque::new(), count: 0 });
        }
        let parts = self.parts.as_mut().expect("made above");
        while parts.under_way.len() >= AT_A_TIME {
            let sent = parts.under_way.pop_front().map(|part| stores.wait(part));
            joined(sent).map_err(|error| Fault::new(&self.place.address, error).doing("cannot write"))?;
        }
        let part = parts.upload.put_part(PutPayload::from(std::mem::take(&mut self.waiting)));
        parts.under_way.push_back(stores.runtime().spawn(part));
        parts.count += 1;
        Ok(())
    }

    fn part_bytes(&self) -> usize {
        match &self.parts {
            Some(parts) if parts.count >= SMALL_PARTS => LARGE_PART,
            _ => PART,
        }
    }

    /// Makes the object appear.
    fn place(mut self) -> io::Result<()> {
        let stores = self.place.stores.clone();
        if self.parts.is_none() && self.waiting.len() <= SINGLE {
            return self.put();
        }
        if !self.waiting.is_empty() {
            self.send_part()?;
        }
        let parts = self.parts.as_mut().expect("a part has been sent");
        while let Some(part) = parts.under_way.pop_front() {
            let sent = joined(Some(stores.wait(part)));
            sent.map_err(|error| Fault::new(&self.place.address, error).doing("cannot write"))?;
        }
        if !self.force && self.place.look()?.is_some() {
            return Err(exists().into());
        }
        let completed = stores.wait(parts.upload.complete());
        completed.map_err(|error| self.fault(error))?;
        // Nothing is left to be thrown away.
        self.parts = None;
        Ok(())
    }

    /// Sends everything by one request.
    fn put(mut self) -> io::Result<()> {
        let payload = PutPayload::from(std::mem::take(&mut self.waiting));
        let put = |mode: PutMode| {
            let options = PutOptions { mode, ..PutOptions::default() };
            self.place.stores.wait(async {
                self.place.store()?.put_opts(&self.place.path, payload.clone(), options).await
            })
        };
        let done = match put(if self.force { PutMode::Overwrite } else { PutMode::Create }) {
            Err(Stored::AlreadyExists { .. } | Stored::Precondition { .. }) if !self.force => {
                return Err(exists().into());
            }
            Err(Stored::NotImplemented { .. } | Stored::NotSupported { .. }) => {
                if !self.force && self.place.look()?.is_some() {
                    return Err(exists().into());
                }
                put(PutMode::Overwrite)
            }
            done => done,
        };
        done.map(drop).map_err(|error| self.fault(error))
    }
}

/// The result of a part whose task may have ended badly.
fn joined(
    sent: Option<std::result::Result<object_store::Result<()>, tokio::task::JoinError>>,
) -> object_store::Result<()> {
    match sent {
        None => Ok(()),
        Some(Ok(done)) => done,
        Some(Err(error)) => Err(Stored::JoinError { source: error }),
    }
}

fn exists() -> Error {
    Error::usage("the object exists already").hint(Hint::Force)
}

impl Output for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.part_bytes() - self.waiting.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.waiting.extend_from_slice(now);
            rest = later;
            if self.waiting.len() == self.part_bytes() {
                self.send_part()?;
            }
        }
        Ok(())
    }

    fn can_patch(&self) -> bool {
        false
    }

    fn patch(&mut self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(Error::usage("what was uploaded cannot be patched").into())
    }

    fn sibling(&mut self, suffix: &str) -> io::Result<Option<Box<dyn Output>>> {
        let mut sibling = Upload::create(self.place.sibling(suffix), self.force)?;
        sibling.main = Some(Arc::clone(&self.siblings));
        Ok(Some(Box::new(sibling)))
    }

    fn remove_sibling(&mut self, suffix: &str) -> io::Result<()> {
        self.removals.push(self.place.sibling(suffix));
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> io::Result<()> {
        if let Some(main) = self.main.take() {
            main.lock().unwrap_or_else(PoisonError::into_inner).push(*self);
            return Ok(());
        }
        let siblings = std::mem::take(&mut *self.siblings.lock().unwrap_or_else(PoisonError::into_inner));
        let removals = std::mem::take(&mut self.removals);
        let force = self.force;
        let mut placed = Vec::new();
        let place_all = || {
            for sibling in siblings {
                let place = sibling.place.clone();
                sibling.place()?;
                placed.push(place);
            }
            for place in removals {
                match place.stores.wait(async { place.store()?.delete(&place.path).await }) {
                    Ok(()) | Err(Stored::NotFound { .. }) => {}
                    Err(error) => {
                        return Err(Fault::new(&place.address, error).doing("cannot delete").into());
                    }
                }
            }
            self.place()
        };
        place_all().inspect_err(|_| {
            // Side objects that replaced nothing would be left without their data.
            if !force {
                for place in &placed {
                    let _ = place.stores.wait(async { place.store()?.delete(&place.path).await });
                }
            }
        })
    }
}

impl Drop for Upload {
    /// Throws away the parts of an upload that was not completed.
    fn drop(&mut self) {
        if let Some(mut parts) = self.parts.take() {
            parts.under_way.iter().for_each(JoinHandle::abort);
            let _ = self.place.stores.wait(parts.upload.abort());
        }
    }
}
