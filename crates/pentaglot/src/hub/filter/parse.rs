//! The text of a filter: tokens, then comparisons.

use super::literal::{Literal, Number};
use crate::error::{Error, Result};

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The condition on a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    IsNull,
    IsNotNull,
    Compare(Operator, Literal),
}

/// A comparison as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    pub(super) column: String,
    pub(super) test: Test,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    /// In double quotes.
    Name(String),
    /// In single quotes.
    Text(String),
    Operator(Operator),
}

impl Token {
    fn is(&self, keyword: &str) -> bool {
        matches!(self, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Name(name) => format!("the name {name:?}"),
            Token::Text(text) => format!("the text '{text}'"),
            Token::Operator(_) => "an operator".to_owned(),
        }
    }
}

fn unexpected(at: usize, expected: &str, found: &str) -> Error {
    Error::usage(format!("filter, at byte {at}: expected {expected}, found {found}"))
}

/// Tokens and their offsets.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        let (token, length) = match first {
            '\'' | '"' => {
                let (content, length) = quoted(rest, first)
                    .ok_or_else(|| unexpected(at, &format!("a closing {first}"), "the end of the filter"))?;
                (if first == '"' { Token::Name(content) } else { Token::Text(content) }, length)
            }
            '=' if rest.starts_with("==") => (Token::Operator(Operator::Equal), 2),
            '=' => (Token::Operator(Operator::Equal), 1),
            '<' if rest.starts_with("<>") => (Token::Operator(Operator::NotEqual), 2),
            '<' if rest.starts_with("<=") => (Token::Operator(Operator::LessOrEqual), 2),
            '<' => (Token::Operator(Operator::Less), 1),
            '>' if rest.starts_with(">=") => (Token::Operator(Operator::GreaterOrEqual), 2),
            '>' => (Token::Operator(Operator::Greater), 1),
            '!' if rest.starts_with("!=") => (Token::Operator(Operator::NotEqual), 2),
            '!' => return Err(unexpected(at, "an operator (= != < <= > >=)", "`!`")),
            _ => {
                let ends = |character: char| character.is_whitespace() || "=!<>'\"".contains(character);
                let length = rest.find(ends).unwrap_or(rest.len());
                (Token::Word(rest[..length].to_owned()), length)
            }
        };
        tokens.push((at, token));
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// The content between quotes, in which a doubled quote is one, and its length including the quotes.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character != quote {
            content.push(character);
        } else if characters.next_if(|(_, next)| *next == quote).is_some() {
            content.push(quote);
        } else {
            return Some((content, at + 1));
        }
    }
    None
}

/// The comparisons of a filter.
pub(super) fn parse(text: &str) -> Result<Vec<Written>> {
    let mut parser = Parser { tokens: tokens(text)?.into_iter().peekable(), end: text.len() };
    let mut comparisons = vec![parser.comparison()?];
    while let Some((at, token)) = parser.tokens.next() {
        if !token.is("and") {
            return Err(unexpected(at, "`and` or the end of the filter", &token.describe()));
        }
        comparisons.push(parser.comparison()?);
    }
    Ok(comparisons)
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<(usize, Token)>>,
    end: usize,
}

impl Parser {
    fn next(&mut self, expected: &str) -> Result<(usize, Token)> {
        self.tokens.next().ok_or_else(|| unexpected(self.end, expected, "the end of the filter"))
    }

    fn comparison(&mut self) -> Result<Written> {
        let column = match self.next("a column")? {
            (_, Token::Word(name) | Token::Name(name)) => name,
            (at, other) => return Err(unexpected(at, "a column", &other.describe())),
        };
        let expected = "an operator (= != < <= > >=) or `is`";
        let test = match self.next(expected)? {
            (_, Token::Operator(operator)) => Test::Compare(operator, self.literal()?),
            (_, token) if token.is("is") => {
                let not = self.tokens.next_if(|(_, token)| token.is("not")).is_some();
                match self.next("`null`")? {
                    (_, token) if token.is("null") && not => Test::IsNotNull,
                    (_, token) if token.is("null") => Test::IsNull,
                    (at, other) => return Err(unexpected(at, "`null`", &other.describe())),
                }
            }
            (at, other) => return Err(unexpected(at, expected, &other.describe())),
        };
        Ok(Written { column, test })
    }

    fn literal(&mut self) -> Result<Literal> {
        let expected = "a number, true, false or a text in single quotes";
        match self.next(expected)? {
            (_, Token::Text(text)) => Ok(Literal::Text(text)),
            (at, Token::Word(word)) => match word.to_ascii_lowercase().as_str() {
                "true" => Ok(Literal::Bool(true)),
                "false" => Ok(Literal::Bool(false)),
                "nan" => Ok(Literal::NaN),
                "inf" | "+inf" | "infinity" | "+infinity" => Ok(Literal::Infinity { negative: false }),
                "-inf" | "-infinity" => Ok(Literal::Infinity { negative: true }),
                "null" => Err(unexpected(at, &format!("{expected} (nulls: `is null`)"), "`null`")),
                _ => Number::parse(&word)
                    .map(Literal::Number)
                    .ok_or_else(|| unexpected(at, expected, &format!("`{word}`"))),
            },
            (at, other) => Err(unexpected(at, expected, &other.describe())),
        }
    }
}
