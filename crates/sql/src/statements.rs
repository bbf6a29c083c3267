//! A text of several statements.

/// The statements of a text, without the semicolons between them, comments and empty ones. Quotes and comments are as in SQL.
///
/// ```
/// let found = pentaglot_sql::split_statements("SELECT ';' -- no; end\n; /* ; */ SELECT 2;");
/// assert_eq!(found, ["SELECT ';'", "SELECT 2"]);
/// ```
pub fn split(text: &str) -> Vec<String> {
    let mut statements = vec![String::new()];
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let len = match next {
            '\'' | '"' | '`' => rest[1..].find(next).map_or(rest.len(), |end| end + 2),
            '-' if rest.starts_with("--") => {
                rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = &rest[rest.find("*/").map_or(rest.len(), |end| end + 2)..];
                continue;
            }
            ';' => {
                statements.push(String::new());
                rest = &rest[1..];
                continue;
            }
            other => other.len_utf8(),
        };
        if let Some(last) = statements.last_mut() {
            last.push_str(&rest[..len]);
        }
        rest = &rest[len..];
    }
    let statements = statements.into_iter().map(|statement| statement.trim().to_owned());
    statements.filter(|statement| !statement.is_empty()).collect()
}
