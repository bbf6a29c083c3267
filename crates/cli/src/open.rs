//! Opening an input, the same for every verb that reads one.

use pentaglot::job::{self, OpenOptions, Opened};

use crate::screen::{self, escape};
use crate::{About, Failure, Session};

impl Session {
    /// Opens an input whose type and options must be for it, and says what of it is ignored.
    pub(crate) fn open(&self, file: &str, options: &OpenOptions) -> Result<Opened, Failure> {
        let opened = self.open_one_of(file, options)?;
        opened.check_type(options).about(file)?;
        Ok(opened)
    }

    /// As [`open`](Self::open), where a type may be given for another input of the job.
    pub(crate) fn open_one_of(&self, file: &str, options: &OpenOptions) -> Result<Opened, Failure> {
        let opened = job::open(&self.registry, file, options).about(file)?;
        opened.check_options(&options.options).about(file)?;
        self.say_notes(file, &opened.document.summary().ignored);
        Ok(opened)
    }

    /// Prints notes on a file, unless they are not wanted.
    pub(crate) fn say_notes(&self, file: &str, notes: &[String]) {
        if !self.global.quiet {
            notes.iter().for_each(|note| screen::say(&escape(&format!("{file}: note: {note}"))));
        }
    }
}
