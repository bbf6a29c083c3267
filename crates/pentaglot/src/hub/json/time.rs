//! Writes and parses dates and times as text: `YYYY-MM-DD`, `HH:MM:SS[.f]`, `YYYY-MM-DDTHH:MM:SS[.f]` with `Z` or an
//! offset.
//!
//! Only years 0000 to 9999 have such a text; a fraction is written without trailing zeros.

use arrow_array::temporal_conversions::as_datetime_with_timezone;
use arrow_array::timezone::Tz;
use arrow_array::types::TimestampSecondType;
use arrow_schema::TimeUnit;

const DAY_SECONDS: i64 = 86_400;

/// The number of units per second.
pub(crate) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Year, month and day of a day counted from 1970-01-01 (proleptic Gregorian; Howard Hinnant's `civil_from_days`).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The inverse of [`civil_from_days`], for years from 0 on.
fn days_from_civil(year: u32, month: u32, day: u32) -> i64 {
    // Years begin in March, 400 of them before the year 0, so that nothing is negative.
    let year = year + 400 - u32::from(month <= 2);
    let month_index = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_index + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year;
    i64::from(days) - 146_097 - 719_468
}

fn push_digits(out: &mut Vec<u8>, value: i64, count: u32) {
    for place in (0..count).rev() {
        out.push(b'0' + (value / 10i64.pow(place) % 10) as u8);
    }
}

/// Appends `YYYY-MM-DD`; returns `false` and appends nothing if the day has no such text.
pub(crate) fn write_date(out: &mut Vec<u8>, days: i64) -> bool {
    // Days of 0000-01-01 and 9999-12-31.
    if !(-719_528..=2_932_896).contains(&days) {
        return false;
    }
    let (year, month, day) = civil_from_days(days);
    push_digits(out, year, 4);
    out.push(b'-');
    push_digits(out, month, 2);
    out.push(b'-');
    push_digits(out, day, 2);
    true
}

/// Appends `HH:MM:SS[.f]`; returns `false` and appends nothing if the time is not within a day.
pub(crate) fn write_time(out: &mut Vec<u8>, value: i64, unit: TimeUnit) -> bool {
    let per_second = per_second(unit);
    let seconds = value.div_euclid(per_second);
    if !(0..DAY_SECONDS).contains(&seconds) {
        return false;
    }
    push_digits(out, seconds / 3600, 2);
    out.push(b':');
    push_digits(out, seconds / 60 % 60, 2);
    out.push(b':');
    push_digits(out, seconds % 60, 2);
    let mut fraction = value.rem_euclid(per_second);
    if fraction != 0 {
        let mut digits = per_second.ilog10();
        while fraction % 10 == 0 {
            fraction /= 10;
            digits -= 1;
        }
        out.push(b'.');
        push_digits(out, fraction, digits);
    }
    true
}

/// The zone that is written after a timestamp.
#[derive(Debug, Clone)]
pub(crate) enum Zone {
    /// The timestamp has no zone.
    None,
    /// A constant offset in seconds.
    Fixed(i64),
    /// An offset that depends on the time.
    Named(Tz),
    /// An unknown zone: its timestamps have no text.
    Unknown,
}

impl Zone {
    pub(crate) fn new(zone: Option<&str>) -> Self {
        let Some(zone) = zone else { return Zone::None };
        if matches!(zone, "UTC" | "Z" | "Etc/UTC" | "GMT" | "+00:00") {
            return Zone::Fixed(0);
        }
        match zone.parse::<Tz>() {
            Ok(named) if zone.starts_with(['+', '-']) => match offset_at(0, named) {
                Some(seconds) => Zone::Fixed(seconds),
                None => Zone::Unknown,
            },
            Ok(named) => Zone::Named(named),
            Err(_) => Zone::Unknown,
        }
    }
}

/// Seconds east of UTC at a time.
fn offset_at(seconds: i64, zone: Tz) -> Option<i64> {
    let local = as_datetime_with_timezone::<TimestampSecondType>(seconds, zone)?;
    Some(local.naive_local().and_utc().timestamp() - local.naive_utc().and_utc().timestamp())
}

/// Appends `YYYY-MM-DDTHH:MM:SS[.f]` with `Z` or an offset if zoned; returns `false` and appends nothing if it has
/// no such text.
pub(crate) fn write_timestamp(out: &mut Vec<u8>, value: i64, unit: TimeUnit, zone: &Zone) -> bool {
    let per_second = per_second(unit);
    let utc = value.div_euclid(per_second);
    let offset = match zone {
        Zone::None => None,
        Zone::Fixed(offset) => Some(*offset),
        Zone::Named(zone) => match offset_at(utc, *zone) {
            Some(offset) => Some(offset),
            None => return false,
        },
        Zone::Unknown => return false,
    };
    let Some(local) = utc.checked_add(offset.unwrap_or(0)) else { return false };
    if !write_date(out, local.div_euclid(DAY_SECONDS)) {
        return false;
    }
    out.push(b'T');
    let of_day = local.rem_euclid(DAY_SECONDS) * per_second + value.rem_euclid(per_second);
    write_time(out, of_day, unit);
    match offset {
        None => {}
        Some(0) => out.push(b'Z'),
        Some(offset) => {
            out.push(if offset < 0 { b'-' } else { b'+' });
            let offset = offset.abs();
            push_digits(out, offset / 3600, 2);
            out.push(b':');
            push_digits(out, offset / 60 % 60, 2);
            if offset % 60 != 0 {
                out.push(b':');
                push_digits(out, offset % 60, 2);
            }
        }
    }
    true
}

/// The number that some digits are.
#[inline]
fn number<const N: usize>(digits: [u8; N]) -> Option<u32> {
    let digits = digits.map(|byte| u32::from(byte.wrapping_sub(b'0')));
    let is_number = digits.iter().fold(true, |all, digit| all & (*digit <= 9));
    is_number.then(|| digits.iter().fold(0, |number, digit| number * 10 + digit))
}

/// Reads two digits.
fn take_two(text: &mut &[u8]) -> Option<i64> {
    let (digits, rest) = text.split_first_chunk::<2>()?;
    *text = rest;
    number(*digits).map(i64::from)
}

fn take_byte(text: &mut &[u8], byte: u8) -> Option<()> {
    *text = text.strip_prefix(&[byte])?;
    Some(())
}

#[inline]
fn take_date(text: &mut &[u8]) -> Option<i64> {
    let (date, rest) = text.split_first_chunk::<10>()?;
    *text = rest;
    let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *date else { return None };
    let (year, month, day) = (number([y0, y1, y2, y3])?, number([m0, m1])?, number([d0, d1])?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=last).contains(&day).then(|| days_from_civil(year, month, day))
}

/// Seconds of the day and the fraction in `unit`; digits past the unit must be zero.
#[inline]
fn take_time(text: &mut &[u8], unit: TimeUnit) -> Option<(i64, i64)> {
    let (time, rest) = text.split_first_chunk::<8>()?;
    *text = rest;
    let [h0, h1, b':', m0, m1, b':', s0, s1] = *time else { return None };
    let (hours, minutes, seconds) = (number([h0, h1])?, number([m0, m1])?, number([s0, s1])?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let fraction = match text.strip_prefix(b".") {
        Some(rest) => {
            let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, rest) = rest.split_at(count);
            *text = rest;
            fraction_in(digits, unit)?
        }
        None => 0,
    };
    Some((i64::from(hours * 3600 + minutes * 60 + seconds), fraction))
}

/// The fraction that some digits are, at least one.
fn fraction_in(digits: &[u8], unit: TimeUnit) -> Option<i64> {
    let places = match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    let (kept, zeros) = digits.split_at(places.min(digits.len()));
    if digits.is_empty() || zeros.iter().any(|digit| *digit != b'0') {
        return None;
    }
    let value = kept.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    const POWERS: [i64; 10] =
        [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
    Some(value * POWERS.get(places - kept.len())?)
}

/// `Z` or `±HH:MM[:SS]`, in seconds.
fn take_offset(text: &mut &[u8]) -> Option<i64> {
    if take_byte(text, b'Z').is_some() {
        return Some(0);
    }
    let sign = if take_byte(text, b'-').is_some() {
        -1
    } else {
        take_byte(text, b'+')?;
        1
    };
    let hours = take_two(text)?;
    take_byte(text, b':')?;
    let minutes = take_two(text)?;
    let seconds = if take_byte(text, b':').is_some() { take_two(text)? } else { 0 };
    (minutes < 60 && seconds < 60).then_some(sign * (hours * 3600 + minutes * 60 + seconds))
}

/// The day of `YYYY-MM-DD`, counted from 1970-01-01.
pub(crate) fn parse_date(mut text: &[u8]) -> Option<i64> {
    take_date(&mut text).filter(|_| text.is_empty())
}

/// The time `HH:MM:SS[.f]` in `unit`.
pub(crate) fn parse_time(mut text: &[u8], unit: TimeUnit) -> Option<i64> {
    let (seconds, fraction) = take_time(&mut text, unit)?;
    text.is_empty().then_some(seconds * per_second(unit) + fraction)
}

/// The timestamp in `unit`; with `Z` or an offset exactly if `zoned`. A space is allowed in place of the `T`.
pub(crate) fn parse_timestamp(mut text: &[u8], unit: TimeUnit, zoned: bool) -> Option<i64> {
    let days = take_date(&mut text)?;
    take_byte(&mut text, b'T').or_else(|| take_byte(&mut text, b' '))?;
    let (of_day, fraction) = take_time(&mut text, unit)?;
    let offset = if zoned { take_offset(&mut text)? } else { 0 };
    let seconds = days * DAY_SECONDS + of_day - offset;
    let value = i128::from(seconds) * i128::from(per_second(unit)) + i128::from(fraction);
    i64::try_from(value).ok().filter(|_| text.is_empty())
}

/// The parts of a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment<'a> {
    /// Seconds since 1970-01-01, or since midnight, in local time.
    pub(crate) seconds: i64,
    /// The digits of the fraction.
    pub(crate) fraction: &'a str,
    /// Seconds east of UTC, if an offset is written.
    pub(crate) offset: Option<i64>,
}

/// `HH:MM[:SS[.f]]`: seconds since midnight and the digits of the fraction.
fn take_clock<'a>(text: &mut &'a [u8]) -> Option<(i64, &'a str)> {
    let hours = take_two(text)?;
    take_byte(text, b':')?;
    let minutes = take_two(text)?;
    let mut seconds = 0;
    let mut fraction: &[u8] = b"";
    if take_byte(text, b':').is_some() {
        seconds = take_two(text)?;
        if take_byte(text, b'.').is_some() {
            let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            (fraction, *text) = text.split_at(count);
            if fraction.is_empty() {
                return None;
            }
        }
    }
    let fits = hours < 24 && minutes < 60 && seconds < 60;
    fits.then_some((hours * 3600 + minutes * 60 + seconds, std::str::from_utf8(fraction).ok()?))
}

/// `YYYY-MM-DD[THH:MM[:SS[.f]][offset]]`; a space may replace the `T`.
pub(crate) fn parse_moment(text: &str) -> Option<Moment<'_>> {
    let mut text = text.as_bytes();
    let midnight = take_date(&mut text)? * DAY_SECONDS;
    if text.is_empty() {
        return Some(Moment { seconds: midnight, fraction: "", offset: None });
    }
    take_byte(&mut text, b'T').or_else(|| take_byte(&mut text, b' '))?;
    let (of_day, fraction) = take_clock(&mut text)?;
    let offset = if text.is_empty() { None } else { Some(take_offset(&mut text)?) };
    text.is_empty().then_some(Moment { seconds: midnight + of_day, fraction, offset })
}

/// `HH:MM[:SS[.f]]`.
pub(crate) fn parse_clock(text: &str) -> Option<Moment<'_>> {
    let mut text = text.as_bytes();
    let (seconds, fraction) = take_clock(&mut text)?;
    text.is_empty().then_some(Moment { seconds, fraction, offset: None })
}

impl Zone {
    /// The UTC seconds of local seconds: none if clocks are set forward over that time, two if they are set
    /// back over it.
    pub(crate) fn utc_of_local(&self, local: i64) -> Vec<i64> {
        match self {
            Zone::None => vec![local],
            Zone::Fixed(offset) => vec![local - offset],
            Zone::Unknown => Vec::new(),
            Zone::Named(zone) => {
                // Offsets change less often than every two days.
                let offsets = [-DAY_SECONDS, DAY_SECONDS].map(|days| offset_at(local + days, *zone));
                let mut found: Vec<i64> = offsets
                    .into_iter()
                    .flatten()
                    .filter(|offset| offset_at(local - offset, *zone) == Some(*offset))
                    .map(|offset| local - offset)
                    .collect();
                found.dedup();
                found
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_have_no_one_or_two_instants() {
        let berlin = Zone::new(Some("Europe/Berlin"));
        let local = |text: &str| parse_moment(text).unwrap().seconds;
        assert_eq!(berlin.utc_of_local(local("2024-07-03T11:46:40")), [1_720_000_000]);
        assert_eq!(berlin.utc_of_local(local("2024-03-31T02:30")), [0i64; 0]);
        let twice = berlin.utc_of_local(local("2024-10-27T02:30"));
        assert_eq!(twice, [1_729_989_000, 1_729_992_600]);
        assert_eq!(Zone::new(Some("+02:00")).utc_of_local(7200), [0]);
    }

    #[test]
    fn moments_may_lack_their_end() {
        let moment = |seconds, fraction, offset| Some(Moment { seconds, fraction, offset });
        assert_eq!(parse_moment("1970-01-02"), moment(86_400, "", None));
        assert_eq!(parse_moment("1970-01-01 00:01"), moment(60, "", None));
        assert_eq!(parse_moment("1970-01-01T00:00:01.250Z"), moment(1, "250", Some(0)));
        assert_eq!(parse_moment("1970-01-01T00:00-01:00"), moment(0, "", Some(-3600)));
        assert_eq!(parse_clock("23:59:59.9"), moment(86_399, "9", None));
        for bad in
            ["", "1970", "1970-01-01T", "1970-01-01T24:00", "1970-01-01T00:00:01.", "1970-01-01T00:00+1"]
        {
            assert_eq!(parse_moment(bad), None, "{bad}");
        }
        assert_eq!(parse_clock("12:00Z"), None);
    }

    fn text(write: impl FnOnce(&mut Vec<u8>) -> bool) -> Option<String> {
        let mut out = Vec::new();
        let there = write(&mut out);
        assert!(there || out.is_empty());
        there.then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn every_day_with_a_text_comes_back() {
        for days in (-719_528..=2_932_896).step_by(13) {
            let date = text(|out| write_date(out, days)).unwrap();
            assert_eq!(parse_date(date.as_bytes()), Some(days), "{date}");
        }
        assert_eq!(text(|out| write_date(out, -719_528)).unwrap(), "0000-01-01");
        assert_eq!(text(|out| write_date(out, 2_932_896)).unwrap(), "9999-12-31");
        assert_eq!(text(|out| write_date(out, 2_932_897)), None);
        for bad in ["2023-02-29", "1900-02-29", "2024-13-01", "2024-1-01", "2024-01-01 ", "12024-01-01"] {
            assert_eq!(parse_date(bad.as_bytes()), None);
        }
    }

    #[test]
    fn fractions_are_those_of_their_digits() {
        for (text, unit, expected) in [
            ("00:00:00.000001", TimeUnit::Microsecond, Some(1)),
            ("00:00:00.1", TimeUnit::Nanosecond, Some(100_000_000)),
            ("00:00:01.999999999", TimeUnit::Nanosecond, Some(1_999_999_999)),
            ("00:00:00.1230000000000000000000000", TimeUnit::Millisecond, Some(123)),
            ("00:00:00.1234", TimeUnit::Millisecond, None),
            ("00:00:00.0", TimeUnit::Second, Some(0)),
            ("00:00:00.", TimeUnit::Second, None),
            ("00:00:0/", TimeUnit::Second, None),
            ("0:00:00", TimeUnit::Second, None),
        ] {
            assert_eq!(parse_time(text.as_bytes(), unit), expected, "{text}");
        }
        // The least and the greatest time in nanoseconds, and those beside them.
        let nanoseconds = |text: &str| parse_timestamp(text.as_bytes(), TimeUnit::Nanosecond, false);
        assert_eq!(nanoseconds("1677-09-21T00:12:43.145224192"), Some(i64::MIN));
        assert_eq!(nanoseconds("1677-09-21T00:12:43.145224191"), None);
        assert_eq!(nanoseconds("2262-04-11T23:47:16.854775807"), Some(i64::MAX));
        assert_eq!(nanoseconds("2262-04-11T23:47:16.854775808"), None);
    }

    #[test]
    fn times_have_no_trailing_zeros() {
        let time = |value, unit| text(|out| write_time(out, value, unit));
        assert_eq!(time(3_723_500_000, TimeUnit::Microsecond).unwrap(), "01:02:03.5");
        assert_eq!(time(1, TimeUnit::Nanosecond).unwrap(), "00:00:00.000000001");
        assert_eq!(time(86_399, TimeUnit::Second).unwrap(), "23:59:59");
        assert_eq!(time(86_400, TimeUnit::Second), None);
        assert_eq!(time(-1, TimeUnit::Millisecond), None);
        assert_eq!(parse_time(b"01:02:03.5", TimeUnit::Microsecond), Some(3_723_500_000));
        assert_eq!(parse_time(b"01:02:03.50", TimeUnit::Second), None);
        assert_eq!(parse_time(b"01:02:60", TimeUnit::Second), None);
    }

    #[test]
    fn zoned_timestamps_carry_their_offset() {
        let stamp = |value, unit, zone| text(|out| write_timestamp(out, value, unit, &Zone::new(zone)));
        assert_eq!(stamp(0, TimeUnit::Second, None).unwrap(), "1970-01-01T00:00:00");
        assert_eq!(stamp(-1, TimeUnit::Nanosecond, Some("UTC")).unwrap(), "1969-12-31T23:59:59.999999999Z");
        let summer = 1_720_000_000_123;
        let berlin = stamp(summer, TimeUnit::Millisecond, Some("Europe/Berlin")).unwrap();
        assert_eq!(berlin, "2024-07-03T11:46:40.123+02:00");
        assert_eq!(parse_timestamp(berlin.as_bytes(), TimeUnit::Millisecond, true), Some(summer));
        assert_eq!(stamp(0, TimeUnit::Second, Some("-09:30")).unwrap(), "1969-12-31T14:30:00-09:30");
        assert_eq!(stamp(0, TimeUnit::Second, Some("Nowhere")), None);
        assert_eq!(stamp(i64::MAX, TimeUnit::Second, Some("Europe/Berlin")), None);
        assert_eq!(parse_timestamp(b"2024-07-03T11:46:40", TimeUnit::Second, true), None);
        assert_eq!(parse_timestamp(b"2024-07-03T11:46:40Z", TimeUnit::Second, false), None);
        assert_eq!(parse_timestamp(b"9999-12-31T00:00:00", TimeUnit::Nanosecond, false), None);
    }
}
