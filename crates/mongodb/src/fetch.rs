//! Chunks on their way from the server, in order: some are asked for at a time, and come as they are.

use std::collections::HashMap;
use std::time::Duration;

use futures::{Stream, StreamExt};
use mongodb::bson::Document;
use mongodb::bson::raw::RawDocumentBuf;
use pentaglot::{Error, Result};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::fault;
use crate::store::{ChunkId, Store, Version};

/// Chunks of one request: they come one after the other, and few are held at a time.
const WINDOW: usize = 16;
/// Requests that are under way at a time.
const AHEAD: usize = 2;

/// Chunks that are being fetched.
pub(crate) struct Fetch {
    receiver: mpsc::Receiver<Result<RawDocumentBuf>>,
    task: JoinHandle<()>,
}

impl Fetch {
    /// Starts to fetch chunks, with the fields of a projection or all.
    pub(crate) fn start(
        store: &Store,
        key: &str,
        ids: Vec<ChunkId>,
        fields: Option<Document>,
    ) -> Result<Self> {
        let (sender, receiver) = mpsc::channel(1);
        let (own, key) = (store.clone(), key.to_owned());
        let task = store.collections.runtime()?.spawn(async move {
            if let Err(error) = send_all(&own, &key, &ids, fields, &sender).await {
                // Nobody may be listening any more.
                drop(sender.send(Err(error)).await);
            }
        });
        Ok(Fetch { receiver, task })
    }

    /// The next chunk; `None` after the last.
    pub(crate) fn next(&mut self, store: &Store) -> Result<Option<RawDocumentBuf>> {
        store.collections.runtime()?.block_on(self.receiver.recv()).transpose()
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends all chunks in order.
async fn send_all(
    store: &Store,
    key: &str,
    ids: &[ChunkId],
    fields: Option<Document>,
    sender: &mpsc::Sender<Result<RawDocumentBuf>>,
) -> Result<()> {
    let timeout = store.collections.shared.settings.timeout;
    let windows: Vec<Vec<ChunkId>> = Version::groups(ids, WINDOW).map(<[ChunkId]>::to_vec).collect();
    let requests = futures::stream::iter(windows).map(|some| {
        let mut request = store.chunks.find(Version::chunk_filter(key, &some));
        if let Some(fields) = fields.clone() {
            request = request.projection(fields);
        }
        async move { in_time(store, timeout, request.into_future()).await.map(|cursor| (some, cursor)) }
    });
    let mut answers = std::pin::pin!(requests.buffered(AHEAD));
    while let Some(answer) = answers.next().await {
        let (some, cursor) = answer?;
        if !send_window(store, timeout, &some, cursor, sender).await? {
            return Ok(());
        }
    }
    Ok(())
}

/// Sends the chunks of one answer, which may have another order; gives whether somebody is listening.
async fn send_window(
    store: &Store,
    timeout: Duration,
    ids: &[ChunkId],
    mut cursor: impl Stream<Item = mongodb::error::Result<RawDocumentBuf>> + Unpin,
    sender: &mpsc::Sender<Result<RawDocumentBuf>>,
) -> Result<bool> {
    let mut early: HashMap<ChunkId, RawDocumentBuf> = HashMap::new();
    for id in ids {
        let chunk = loop {
            if let Some(chunk) = early.remove(id) {
                break chunk;
            }
            let next = async { cursor.next().await.transpose() };
            let chunk = in_time(store, timeout, next).await?.ok_or_else(|| missing(*id))?;
            let found = chunk.get_document("_id").ok().and_then(|id| Document::try_from(id).ok());
            // A chunk that was not asked for is not kept.
            let found = found.as_ref().and_then(ChunkId::from_bson).filter(|found| ids.contains(found));
            early.extend(found.map(|found| (found, chunk)));
        };
        if sender.send(Ok(chunk)).await.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits for a request, for a limited time.
async fn in_time<T>(
    store: &Store,
    timeout: Duration,
    request: impl Future<Output = mongodb::error::Result<T>>,
) -> Result<T> {
    match tokio::time::timeout(timeout, request).await {
        Ok(answer) => answer.map_err(|error| fault::error(&store.address, &error)),
        Err(_) => Err(fault::timeout(&store.address, timeout)),
    }
}

/// An error in a chunk.
pub(crate) fn at(id: ChunkId, error: Error) -> Error {
    error.rule("mongodb-store").field(format!("chunk {} of version {}", id.number, id.version))
}

pub(crate) fn missing(id: ChunkId) -> Error {
    at(id, Error::malformed("the chunk", "none: it was removed"))
}
