//! What a conversion will do to each field, before it runs.

use std::fmt;

use crate::error::{Error, Hint, Result};

/// What happens to one field. Later verdicts are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Nothing changes.
    Exact,
    /// Every value survives; the type changes.
    Widened,
    /// Exact if every value fits; the first that does not ends the run.
    Checked,
    /// Some values do not survive.
    Lossy,
    /// The target has no place for it.
    Impossible,
}

impl Verdict {
    /// The word that is printed.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Exact => "exact",
            Verdict::Widened => "widened",
            Verdict::Checked => "checked",
            Verdict::Lossy => "lossy",
            Verdict::Impossible => "impossible",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The plan for one field (or, with an empty field name, for the whole).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldPlan {
    /// The field's name or path; empty for the whole.
    pub field: String,
    /// What it is (Arrow type text, or words).
    pub from: String,
    /// What it becomes (the target's own type text, or words).
    pub to: String,
    /// What that does to its values.
    pub verdict: Verdict,
    /// Why, if there is more to say.
    pub note: Option<String>,
}

/// What a conversion will do, field by field. `--dry-run` prints this same object that the run obeys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The steps, in the order of the fields.
    pub steps: Vec<FieldPlan>,
}

impl Plan {
    /// Adds a step.
    pub fn push(
        &mut self,
        field: impl Into<String>,
        from: impl Into<String>,
        to: impl Into<String>,
        verdict: Verdict,
    ) {
        self.steps.push(FieldPlan {
            field: field.into(),
            from: from.into(),
            to: to.into(),
            verdict,
            note: None,
        });
    }

    /// Adds a step with a reason.
    pub fn push_with(
        &mut self,
        field: impl Into<String>,
        from: impl Into<String>,
        to: impl Into<String>,
        verdict: Verdict,
        note: impl Into<String>,
    ) {
        let note = Some(note.into());
        self.steps.push(FieldPlan { field: field.into(), from: from.into(), to: to.into(), verdict, note });
    }

    /// The worst verdict of all steps.
    pub fn verdict(&self) -> Verdict {
        self.steps.iter().map(|step| step.verdict).max().unwrap_or(Verdict::Exact)
    }

    /// Errs if the plan cannot run: impossible steps, or lossy ones that are not allowed.
    pub fn check(&self, allow_lossy: bool) -> Result<()> {
        let worst = self.verdict();
        let Some(step) = self.steps.iter().find(|step| step.verdict == worst) else { return Ok(()) };
        match worst {
            Verdict::Impossible => Err(Error::unsupported(step.to_string())),
            Verdict::Lossy if !allow_lossy => Err(Error::lossy(step.to_string()).hint(Hint::AllowLossy)),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for FieldPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{} -> {}: {}", self.from, self.to, self.verdict)?;
        if let Some(note) = &self.note {
            write!(f, " ({note})")?;
        }
        Ok(())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        Ok(())
    }
}
