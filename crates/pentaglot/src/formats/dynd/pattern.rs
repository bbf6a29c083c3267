//! Which types match a pattern: the stored type of `array[T]` must match `T`.

use std::collections::HashMap;

use super::types::{Base, Pattern, Type, TypeKind};
use crate::error::{Error, Result};

/// Maximum number of comparisons of one match: consecutive `Dims...` try every split of the dimensions.
const MAX_STEPS: u32 = 1 << 16;

/// The bindings of a pattern's variables so far.
#[derive(Clone, Default)]
struct Bindings<'a> {
    variables: HashMap<&'a str, Bound<'a>>,
    ellipses: HashMap<&'a str, Vec<Dim>>,
    steps: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound<'a> {
    Type(&'a Type),
    Dim(Dim),
    Exponent(usize),
}

impl<'a> Bindings<'a> {
    /// Binds a variable; `false` if it is bound to something else already.
    fn bind(&mut self, name: &'a str, to: Bound<'a>) -> bool {
        *self.variables.entry(name).or_insert(to) == to
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dim {
    Fixed(u64),
    Var,
}

impl Type {
    /// Whether the concrete type `ty` matches this type, taken as a pattern.
    ///
    /// ```
    /// use pentaglot::formats::dynd::Type;
    /// let pattern: Type = "Fixed * {x: T, y: T, ...}".parse()?;
    /// assert!(pattern.matches(&"3 * {x: int8, y: int8, z: bool}".parse()?));
    /// assert!(!pattern.matches(&"3 * {x: int8, y: bool}".parse()?));
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    pub fn matches(&self, ty: &Type) -> bool {
        self.try_matches(ty).unwrap_or(false)
    }

    /// Like [`matches`](Self::matches), but returns an error if there are too many comparisons.
    pub(super) fn try_matches(&self, ty: &Type) -> Result<bool> {
        let mut bound = Bindings::default();
        let found = matches(self, ty, &mut bound);
        if bound.steps > MAX_STEPS {
            return Err(Error::limit("the limit", MAX_STEPS, "more steps to match a pattern"));
        }
        Ok(found)
    }
}

/// The outermost dimension, and what it is a dimension of.
fn dim(ty: &Type) -> Option<(Dim, &Type)> {
    match ty {
        Type::Fixed(count, of) => Some((Dim::Fixed(*count), of)),
        Type::Var(of) => Some((Dim::Var, of)),
        _ => None,
    }
}

fn matches<'a>(pattern: &'a Type, ty: &'a Type, bound: &mut Bindings<'a>) -> bool {
    bound.steps += 1;
    if bound.steps > MAX_STEPS {
        return false;
    }
    match (pattern, ty) {
        (Type::Pattern(pattern), _) => matches_pattern(pattern, ty, bound),
        (Type::Fixed(a, pattern), Type::Fixed(b, ty)) => a == b && matches(pattern, ty, bound),
        (Type::Var(pattern), Type::Var(ty))
        | (Type::Option(pattern), Type::Option(ty))
        | (Type::Pointer(pattern), Type::Pointer(ty)) => matches(pattern, ty, bound),
        (Type::Tuple(patterns), Type::Tuple(types)) => {
            patterns.len() == types.len() && match_tuple(patterns, types, bound)
        }
        (Type::Struct(patterns), Type::Struct(types)) => {
            patterns.len() == types.len() && match_struct(patterns, types, bound)
        }
        // `array[P]` inside a pattern is invariant: equal parameters only.
        _ => pattern == ty,
    }
}

fn match_tuple<'a>(patterns: &'a [Type], types: &'a [Type], bound: &mut Bindings<'a>) -> bool {
    patterns.len() <= types.len() && patterns.iter().zip(types).all(|(p, t)| matches(p, t, bound))
}

fn match_struct<'a>(
    patterns: &'a [(String, Type)],
    types: &'a [(String, Type)],
    bound: &mut Bindings<'a>,
) -> bool {
    patterns.len() <= types.len()
        && patterns.iter().zip(types).all(|((a, p), (b, t))| a == b && matches(p, t, bound))
}

fn matches_pattern<'a>(pattern: &'a Pattern, ty: &'a Type, bound: &mut Bindings<'a>) -> bool {
    match pattern {
        Pattern::Kind(kind) => is_of(*kind, ty),
        Pattern::Variable(name) => dim(ty).is_none() && bound.bind(name, Bound::Type(ty)),
        Pattern::DimVariable(name, of) => {
            dim(ty).is_some_and(|(dim, ty)| bound.bind(name, Bound::Dim(dim)) && matches(of, ty, bound))
        }
        Pattern::Fixed(of) => matches!(dim(ty), Some((Dim::Fixed(_), ty)) if matches(of, ty, bound)),
        Pattern::Dim(of) => dim(ty).is_some_and(|(_, ty)| matches(of, ty, bound)),
        Pattern::Ellipsis(name, of) => {
            let (mut dims, mut rest) = (Vec::new(), ty);
            loop {
                let mut trial = bound.clone();
                let agrees = name
                    .as_ref()
                    .is_none_or(|name| *trial.ellipses.entry(name).or_insert_with(|| dims.clone()) == dims);
                if agrees && matches(of, rest, &mut trial) {
                    *bound = trial;
                    return true;
                }
                bound.steps = trial.steps;
                if bound.steps > MAX_STEPS {
                    return false;
                }
                let Some((next, of)) = dim(rest) else { return false };
                dims.push(next);
                rest = of;
            }
        }
        Pattern::Power(base, exponent, of) => {
            let (mut count, mut rest) = (0, ty);
            loop {
                let mut trial = bound.clone();
                let agrees = trial.bind(exponent, Bound::Exponent(count));
                if agrees && matches(of, rest, &mut trial) {
                    *bound = trial;
                    return true;
                }
                bound.steps = trial.steps;
                if bound.steps > MAX_STEPS {
                    return false;
                }
                let Some((next, of)) = dim(rest) else { return false };
                let fits = match base {
                    Base::Size(size) => next == Dim::Fixed(*size),
                    Base::Var => next == Dim::Var,
                    Base::Fixed => matches!(next, Dim::Fixed(_)),
                    Base::Variable(name) => bound.bind(name, Bound::Dim(next)),
                };
                if !fits {
                    return false;
                }
                count += 1;
                rest = of;
            }
        }
        Pattern::OpenTuple(patterns) => {
            matches!(ty, Type::Tuple(types) if match_tuple(patterns, types, bound))
        }
        Pattern::OpenStruct(patterns) => {
            matches!(ty, Type::Struct(types) if match_struct(patterns, types, bound))
        }
        // No data has such a type, so nothing concrete matches.
        Pattern::Apply(..) | Pattern::Callable(_) | Pattern::State => false,
    }
}

fn is_of(kind: TypeKind, ty: &Type) -> bool {
    match kind {
        TypeKind::Any => true,
        TypeKind::Scalar => dim(ty).is_none(),
        TypeKind::Bool => matches!(ty, Type::Bool),
        TypeKind::Int => matches!(ty, Type::Int(_)),
        TypeKind::Uint => matches!(ty, Type::Uint(_)),
        TypeKind::Float => matches!(ty, Type::Float(_)),
        TypeKind::Complex => matches!(ty, Type::Complex(_)),
        TypeKind::Bytes => matches!(ty, Type::Bytes { .. } | Type::FixedBytes { .. }),
        TypeKind::FixedBytes => matches!(ty, Type::FixedBytes { .. }),
        TypeKind::String => matches!(ty, Type::String | Type::FixedString { .. } | Type::Char(_)),
        TypeKind::FixedString => matches!(ty, Type::FixedString { .. }),
        TypeKind::Categorical => false,
    }
}
