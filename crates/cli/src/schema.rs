//! `schema`: a file's schema in a type language.

use pentaglot::job::{self, Language};
use serde_json::json;

use crate::args::{Schema, SchemaLanguage};
use crate::screen;
use crate::types::data_type_text;
use crate::{About, DONE, Outcome, Session};

pub(crate) fn run(session: &Session, args: &Schema) -> Outcome {
    let options = args.open.options(&session.global);
    let opened = session.open(&args.file, &options)?;
    let summary = opened.document.summary();
    summary.check_member().about(&args.file)?;
    let schema = &summary.schema;
    let text = match args.language {
        SchemaLanguage::Arrow => job::document_type(summary, Language::Arrow),
        SchemaLanguage::Ds => job::document_type(summary, Language::Ds),
        SchemaLanguage::Dynd => job::document_type(summary, Language::Dynd),
        SchemaLanguage::DaphneMeta => job::daphne_meta(summary),
    }
    .about(&args.file)?;
    if args.json {
        let fields: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| json!({ "name": field.name(), "type": data_type_text(field), "nullable": field.is_nullable() }))
            .collect();
        let object =
            json!({ "file": args.file, "type": text, "columns": fields, "metadata": schema.metadata() });
        screen::print(format!("{object}\n").as_bytes())?;
    } else {
        screen::print(format!("{}\n", text.trim_end()).as_bytes())?;
    }
    Ok(DONE)
}
