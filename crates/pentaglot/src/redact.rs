//! Names for messages: the parts of an address that may be secret become `…`.

use std::borrow::Cow;

/// The name of an input or output without secrets: in an address such as `https://user:key@host/file?token=…`, the user
/// information and the query become `…`. Other names are unchanged.
///
/// ```
/// assert_eq!(pentaglot::redacted("https://me:pw@host/x.csv?token=1"), "https://…@host/x.csv?…");
/// assert_eq!(pentaglot::redacted("x.csv?"), "x.csv?");
/// ```
pub fn redacted(name: &str) -> Cow<'_, str> {
    let Some(scheme) = scheme(name) else { return Cow::Borrowed(name) };
    let rest = &name[scheme.len() + 3..];
    let (address, query) = match rest.find(['?', '#']) {
        Some(at) => (&rest[..at], Some(&rest[at..])),
        None => (rest, None),
    };
    let (authority, path) = address.split_at(address.find('/').unwrap_or(address.len()));
    let host = authority.rsplit_once('@').map(|(_, host)| host);
    if host.is_none() && query.is_none() {
        return Cow::Borrowed(name);
    }
    let mut shown = format!("{scheme}://");
    if host.is_some() {
        shown.push_str("…@");
    }
    shown.push_str(host.unwrap_or(authority));
    shown.push_str(path);
    if let Some(query) = query {
        shown.push_str("?…");
        // The name of a member follows the query.
        if let Some((_, member)) = query.rsplit_once("::")
            && !member.contains(['=', '&', '%', '/', '?'])
        {
            shown.push_str("::");
            shown.push_str(member);
        }
    }
    Cow::Owned(shown)
}

/// Text in which every address is [`redacted`]: an error of another library may quote one.
///
/// An address ends at white space, a quotation mark or a colon before them.
///
/// ```
/// let text = "no answer from 'http://me:pw@host/x?y=1' (twice)";
/// assert_eq!(pentaglot::redacted_text(text), "no answer from 'http://…@host/x?…' (twice)");
/// assert_eq!(pentaglot::redacted_text("http://host/x?y=1: no answer"), "http://host/x?…: no answer");
/// ```
pub fn redacted_text(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let is_edge = |c: char| c.is_whitespace() || "'\"`<>(){}[],".contains(c);
    let pieces = text.split_inclusive(is_edge).map(|piece| {
        // A colon after an address ends it: `NAME: what is wrong`.
        let end = piece.trim_end_matches(is_edge).trim_end_matches(':').len();
        let (word, edge) = piece.split_at(end);
        // Other text may precede an address without a space: `url=https://…`.
        let start = word.find("://").map_or(0, |at| {
            let scheme = word[..at].rfind(|c: char| !is_scheme_char(c));
            scheme.map_or(0, |before| before + word[before..].chars().next().map_or(1, char::len_utf8))
        });
        format!("{}{}{edge}", &word[..start], redacted(&word[start..]))
    });
    Cow::Owned(pieces.collect())
}

fn is_scheme_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+.-".contains(c)
}

/// The scheme of an address: `s3` of `s3://bucket/key`; `None` if the name is not an address.
pub(crate) fn scheme(name: &str) -> Option<&str> {
    let (scheme, _) = name.split_once("://")?;
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_scheme_char);
    is_scheme.then_some(scheme)
}

/// A name without the query of an address, for looking up its extension.
pub(crate) fn without_query(name: &str) -> &str {
    match scheme(name) {
        Some(_) => name.split(['?', '#']).next().unwrap_or(name),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_become_an_ellipsis_and_other_names_stay() {
        for (name, shown) in [
            ("s3://bucket/key.csv", "s3://bucket/key.csv"),
            ("https://me@host/x", "https://…@host/x"),
            ("https://me:p@ss@host/x@y", "https://…@host/x@y"),
            ("https://host?token=1", "https://host?…"),
            ("https://host/x.npz?token=a::b::member", "https://host/x.npz?…::member"),
            ("https://host/x?a=b::c=d", "https://host/x?…"),
            ("https://host/x#token", "https://host/x?…"),
            ("dir/odd?name@x", "dir/odd?name@x"),
            ("1://x?y", "1://x?y"),
        ] {
            assert_eq!(redacted(name), shown);
        }
        assert_eq!(
            redacted_text("for url (http://h/x?k=s): 'gs://b/c'"),
            "for url (http://h/x?…): 'gs://b/c'"
        );
        assert_eq!(redacted_text("url=http://u:p@h/"), "url=http://…@h/");
        assert_eq!(without_query("https://h/x.csv.gz?…"), "https://h/x.csv.gz");
        assert_eq!(without_query("x?.csv"), "x?.csv");
    }
}
