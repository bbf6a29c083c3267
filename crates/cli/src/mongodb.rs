//! `mongodb`: what is done to the tables of a collection apart from reading and writing them.

use pentaglot_mongodb::{Collections, Removed};
use serde_json::json;

use crate::args::{Mongodb, MongodbPlace, MongodbWork};
use crate::screen::{self, count, escape};
use crate::{About, DONE, Outcome, Session, convert};

pub(crate) fn run(session: &Session, args: &Mongodb) -> Outcome {
    let collections = Collections::from_env();
    match &args.work {
        MongodbWork::List(place) => list(session, &collections, place),
        MongodbWork::Append(args) => {
            let registry = crate::registry(session.secrets.clone(), collections.appending());
            let (secrets, global) = (session.secrets.clone(), session.global.clone());
            convert::run(&Session { registry, secrets, global }, args)
        }
        MongodbWork::Delete(place) => {
            let removed = collections.delete(session.secrets.reveal(&place.address)).about(&place.address)?;
            tell(session, place, removed)
        }
        MongodbWork::Prune(args) => {
            let place = &args.place;
            let removed = collections.prune(session.secrets.reveal(&place.address), args.keep);
            tell(session, place, removed.about(&place.address)?)
        }
    }
}

fn list(session: &Session, collections: &Collections, place: &MongodbPlace) -> Outcome {
    let tables = collections.tables(session.secrets.reveal(&place.address)).about(&place.address)?;
    let mut text = String::new();
    for table in tables {
        if place.json {
            let object = json!({
                "key": table.key, "version": table.version, "current": table.is_current,
                "rows": table.rows, "chunks": table.chunks,
            });
            text.push_str(&format!("{object}\n"));
        } else {
            let (rows, chunks) = (count(table.rows, "row"), count(table.chunks, "chunk"));
            let mark = if table.is_current { "" } else { "  old" };
            text.push_str(&format!("{}  {}  {rows}, {chunks}{mark}\n", table.version, escape(&table.key)));
        }
    }
    screen::print(text.as_bytes())?;
    Ok(DONE)
}

fn tell(session: &Session, place: &MongodbPlace, removed: Removed) -> Outcome {
    if place.json {
        let object = json!({ "versions": removed.versions, "chunks": removed.chunks });
        screen::print(format!("{object}\n").as_bytes())?;
    } else if !session.global.quiet {
        let (versions, chunks) = (count(removed.versions, "version"), count(removed.chunks, "chunk"));
        screen::say(&format!("{versions} and {chunks} deleted"));
    }
    Ok(DONE)
}
