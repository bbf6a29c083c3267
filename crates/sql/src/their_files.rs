//! What DataFusion's own reader of Parquet finds wrong. It names neither file nor byte; our reader does.

use std::sync::Arc;

use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use pentaglot::job::{self, View};
use pentaglot::{Control, Error, ErrorKind, Result};

use crate::place::Place;

/// The Parquet files that DataFusion reads itself in a plan, and the columns that it reads of each.
#[derive(Debug, Default, Clone)]
pub(crate) struct TheirFiles(Vec<(String, Vec<String>)>);

impl TheirFiles {
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut files = TheirFiles::default();
        files.add(plan);
        files
    }

    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        let source = plan.downcast_ref::<DataSourceExec>();
        if let Some((config, _)) = source.and_then(DataSourceExec::downcast_to_file_source::<ParquetSource>)
            && let Ok(schema) = config.projected_schema()
        {
            let columns: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
            for file in config.file_groups.iter().flat_map(|group| group.iter()) {
                self.0.push((local_name(file.object_meta.location.as_ref()), columns.clone()));
            }
        }
        plan.children().into_iter().for_each(|child| self.add(child));
    }

    /// Reads the same files and columns again, until something is wrong with a file.
    pub(crate) fn fault(&self, place: &Place, control: &Control) -> Option<Error> {
        let fault = |(name, columns): &(String, Vec<String>)| {
            let error = read(place, name, columns, control).err()?;
            let is_of_file =
                matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated | ErrorKind::Unsupported);
            is_of_file.then(|| error.in_input(name.clone()))
        };
        self.0.iter().find_map(fault)
    }
}

/// The name of a file of the local store, as short as it can be.
fn local_name(location: &str) -> String {
    let path = format!("/{location}");
    let here = std::env::current_dir().unwrap_or_default();
    let short = std::path::Path::new(&path).strip_prefix(&here).ok().and_then(|short| short.to_str());
    short.map(str::to_owned).unwrap_or(path)
}

fn read(place: &Place, name: &str, columns: &[String], control: &Control) -> Result<()> {
    let open = place.open.clone().with_control(control.clone());
    let opened = job::open(&place.registry, name, &open)?;
    let mut view = View::default();
    view.columns = Some(columns.to_vec());
    opened.rows(&view)?.try_for_each(|batch| Ok(batch.map(drop)?))
}
