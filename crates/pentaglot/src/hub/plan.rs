//! The plan of a conversion: its effect on each field, known before it runs.

use std::fmt;

use super::loss::{LossKind, LossKinds};
use crate::error::{Error, NOT_SUPPORTED, Result};

/// The effect on one field. Later verdicts are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Nothing changes.
    Exact,
    /// Every value is preserved; the type changes.
    Widened,
    /// Exact if every value fits; the first that does not is an error.
    Checked,
    /// Some values are not preserved.
    Lossy,
    /// The target cannot represent it.
    Impossible,
}

impl Verdict {
    /// The name that is printed.
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

/// The effect of a step on values: a verdict, the kinds of loss if it is checked or lossy, and a note.
///
/// ```
/// use pentaglot::hub::{Effect, LossKind, Verdict};
/// let effect = Effect::checked(LossKind::Range).and(Effect::widened().because("written as text"));
/// assert_eq!((effect.verdict, effect.note), (Verdict::Checked, None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Effect {
    /// The verdict.
    pub verdict: Verdict,
    /// If lossy, the kinds of loss; if checked, the kinds that must be allowed for values that do not fit: none if nothing
    /// allows them.
    pub kinds: LossKinds,
    /// The reason, if there is more to say.
    pub note: Option<String>,
}

impl Effect {
    fn new(verdict: Verdict, kinds: LossKinds) -> Self {
        Effect { verdict, kinds, note: None }
    }

    /// Nothing changes.
    pub fn exact() -> Self {
        Effect::new(Verdict::Exact, LossKinds::NONE)
    }

    /// Every value is preserved; the type changes.
    pub fn widened() -> Self {
        Effect::new(Verdict::Widened, LossKinds::NONE)
    }

    /// Exact if every value fits; other values need `kinds` to be allowed.
    pub fn checked(kinds: impl Into<LossKinds>) -> Self {
        Effect::new(Verdict::Checked, kinds.into())
    }

    /// Exact if every value fits; other values are an error, whatever is allowed.
    pub fn strict() -> Self {
        Effect::new(Verdict::Checked, LossKinds::NONE)
    }

    /// Something of these kinds is lost.
    pub fn lossy(kinds: impl Into<LossKinds>) -> Self {
        Effect::new(Verdict::Lossy, kinds.into())
    }

    /// The target cannot represent it, for this reason.
    pub fn impossible(note: impl Into<String>) -> Self {
        let note = note.into();
        // The note may be the message of an error; the plan's own says it once.
        let note = note.strip_prefix(NOT_SUPPORTED).unwrap_or(&note);
        Effect::new(Verdict::Impossible, LossKinds::NONE).because(note)
    }

    /// The effect with a note.
    #[must_use]
    pub fn because(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// The worse of two effects; if the verdicts are equal, the kinds of both and the first note.
    #[must_use]
    pub fn and(self, other: Effect) -> Self {
        match self.verdict.cmp(&other.verdict) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Greater => self,
            std::cmp::Ordering::Equal => {
                Effect { kinds: self.kinds | other.kinds, note: self.note.or(other.note), ..self }
            }
        }
    }
}

/// The plan for one field (or, with an empty field name, for the whole).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldPlan {
    /// The field's name or path; empty for the whole.
    pub field: String,
    /// The type of the input (Arrow type text, or words).
    pub from: String,
    /// The type of the output (the target's own type text, or words).
    pub to: String,
    /// The effect on its values.
    pub verdict: Verdict,
    /// If lossy, the kinds of loss; if checked, the kinds that must be allowed for values that do not fit: none if nothing
    /// allows them.
    pub kinds: LossKinds,
    /// The reason, if there is more to say.
    pub note: Option<String>,
}

/// The effect of a conversion, field by field. A dry run prints the same object that the run carries out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The steps, in the order of the fields.
    pub steps: Vec<FieldPlan>,
}

impl Plan {
    /// Says where nulls become NaN, if an option of the target asks for that.
    pub(crate) fn say_nan(&mut self) {
        for step in &mut self.steps {
            let is_float = step.to.contains("float") || step.from.contains("float");
            if is_float && step.kinds.contains(LossKind::Nulls) {
                step.note = Some("nulls become NaN".to_owned());
            }
        }
    }

    /// Adds a step.
    pub fn step(
        &mut self,
        field: impl Into<String>,
        from: impl Into<String>,
        to: impl Into<String>,
        effect: Effect,
    ) {
        let Effect { verdict, kinds, note } = effect;
        let to: String = to.into();
        self.steps.push(FieldPlan {
            field: field.into(),
            from: from.into(),
            to: if to.is_empty() { "nothing".to_owned() } else { to },
            verdict,
            kinds,
            note,
        });
    }

    /// The worst verdict of all steps.
    pub fn verdict(&self) -> Verdict {
        self.steps.iter().map(|step| step.verdict).max().unwrap_or(Verdict::Exact)
    }

    /// Returns an error if the plan cannot run: it has impossible steps, or lossy ones of a kind that is not
    /// allowed.
    pub fn check(&self, allowed: LossKinds) -> Result<()> {
        let of = |verdict: Verdict| self.steps.iter().filter(move |step| step.verdict == verdict);
        if let Some(step) = of(Verdict::Impossible).next() {
            let more = of(Verdict::Impossible).count() - 1;
            return Err(Error::unsupported(format!("{step}{}", and_more(more))));
        }
        let refused = || of(Verdict::Lossy).filter(|step| !allowed.contains_all(step.kinds));
        match refused().next() {
            Some(step) => {
                let more = refused().count() - 1;
                let all = refused().fold(LossKinds::NONE, |kinds, step| kinds | step.kinds);
                let missing = all.iter().filter(|kind| !allowed.contains(*kind));
                let missing = missing.fold(LossKinds::NONE, |kinds, kind| kinds | kind);
                Err(Error::lossy(format!("{step}{}", and_more(more))).hint(missing.hint()))
            }
            None => Ok(()),
        }
    }
}

/// How many other steps are refused, if there are any.
fn and_more(steps: usize) -> String {
    match steps {
        0 => String::new(),
        1 => ", and 1 more step".to_owned(),
        more => format!(", and {more} more steps"),
    }
}

impl FieldPlan {
    /// Adds another effect on the same field.
    pub fn worsen(&mut self, effect: Effect) {
        let own = Effect { verdict: self.verdict, kinds: self.kinds, note: self.note.take() };
        Effect { verdict: self.verdict, kinds: self.kinds, note: self.note } = own.and(effect);
    }
}

impl fmt::Display for FieldPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "{} -> {}: {}", self.from, self.to, self.verdict)?;
        if !self.kinds.is_empty() {
            write!(f, ", {}", self.kinds)?;
        }
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
