//! Ticks of axes: round numbers, round times.

use crate::chart::Axis;

/// Positions of ticks on an axis with their labels, about `wanted` at most.
pub(crate) fn ticks(axis: &Axis, wanted: usize) -> Vec<(f64, String)> {
    let (low, high) = (axis.min, axis.max);
    // Also false where one of them is not a number.
    if !(high > low && low.is_finite() && high.is_finite()) {
        return vec![(low, text(axis, low, 1.0))];
    }
    if axis.is_time {
        return time_ticks(low, high, wanted);
    }
    let wanted = wanted.max(1) as f64;
    // Each part is finite, even if the difference is not.
    let step = round_step(high / wanted - low / wanted);
    let first = (low / step).ceil() as i64;
    let places =
        (0..).map(|index| (first + index) as f64 * step).take_while(|place| *place <= high + step * 1e-9);
    places.take(100).map(|place| (place, number_text(place, step))).collect()
}

/// The label of a position on an axis.
pub(crate) fn text(axis: &Axis, place: f64, step: f64) -> String {
    if axis.is_time { time_text(place, step) } else { number_text(place, step) }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A number with the digits needed for a step of this size.
pub(crate) fn number_text(number: f64, step: f64) -> String {
    let number = if number.abs() < step.abs() * 1e-9 { 0.0 } else { number };
    let size = number.abs().max(step.abs());
    if !(1e-4..1e7).contains(&size) && number != 0.0 {
        return format!("{number:.3e}").replace(".000e", "e").replace("00e", "e");
    }
    let digits = (-step.abs().log10().floor()).clamp(0.0, 8.0) as usize;
    let text = format!("{number:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
const DAY: f64 = 86_400.0;
const YEAR: f64 = 365.2425 * DAY;

/// Steps of times up to days; longer ones follow the calendar.
const STEPS: &[f64] = &[
    1e-6,
    1e-5,
    1e-4,
    1e-3,
    2e-3,
    5e-3,
    1e-2,
    2e-2,
    5e-2,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    10.0 * MINUTE,
    15.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    2.0 * HOUR,
    3.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    2.0 * DAY,
    5.0 * DAY,
    10.0 * DAY,
];

fn time_ticks(low: f64, high: f64, wanted: usize) -> Vec<(f64, String)> {
    let least = (high - low) / wanted.max(1) as f64;
    if let Some(step) = STEPS.iter().copied().find(|step| *step >= least) {
        let first = (low / step).ceil();
        let places =
            (0..100).map(|index| (first + f64::from(index)) * step).take_while(|place| *place <= high);
        return places.map(|place| (place, time_text(place, step))).collect();
    }
    // Months or years, from the first of one on.
    let months = [1.0, 3.0, 6.0].into_iter().find(|months| months * YEAR / 12.0 >= least);
    let step = months.map_or_else(|| 12 * (round_step(least / YEAR).max(1.0) as i64), |months| months as i64);
    let (year, month, _) = civil((low / DAY).floor() as i64);
    let first = (year * 12 + month - 1).div_euclid(step) * step;
    let places = (0..400).map(|index| first + index * step);
    let places = places.map(|month| days(month.div_euclid(12), month.rem_euclid(12) + 1, 1) as f64 * DAY);
    let places = places.skip_while(|place| *place < low).take_while(|place| *place <= high);
    places.map(|place| (place, time_text(place, step as f64 * YEAR / 12.0))).collect()
}

/// A time since 1970 with the precision needed for a step of this size.
pub(crate) fn time_text(seconds: f64, step: f64) -> String {
    let day = (seconds / DAY).floor();
    if day.abs() > 1e9 {
        return number_text(seconds, step);
    }
    let (year, month, date) = civil(day as i64);
    let rest = seconds - day * DAY;
    let (hour, minute) = ((rest / HOUR) as u32, (rest % HOUR / MINUTE) as u32);
    match step {
        step if step >= YEAR * 0.99 => format!("{year}"),
        step if step >= DAY * 27.0 => format!("{year}-{month:02}"),
        step if step >= DAY => format!("{year}-{month:02}-{date:02}"),
        step if step >= MINUTE => format!("{month:02}-{date:02} {hour:02}:{minute:02}"),
        step if step >= 1.0 => format!("{hour:02}:{minute:02}:{:02}", (rest % MINUTE).round() as u32),
        step => {
            let digits = (-step.log10().floor()).clamp(1.0, 6.0) as usize;
            format!("{hour:02}:{minute:02}:{:0width$.digits$}", rest % MINUTE, width = digits + 3)
        }
    }
}

/// Year, month and day of a number of days since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

/// The days since 1970 of a date.
fn days(year: i64, month: i64, date: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + date - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(min: f64, max: f64, is_time: bool) -> Axis {
        Axis { min, max, is_time, ..Axis::default() }
    }

    #[test]
    fn ticks_are_round_and_inside() {
        for (low, high, first) in
            [(0.0, 10.0, "0"), (0.13, 0.17, "0.13"), (-5e9, 5e9, "-4e9"), (273.0, 3571.0, "1000")]
        {
            let ticks = ticks(&axis(low, high, false), 6);
            assert_eq!(ticks[0].1, first, "{ticks:?}");
            assert!(ticks.len() > 2 && ticks.len() < 9, "{ticks:?}");
            assert!(
                ticks.iter().all(|(place, _)| *place >= low && *place <= high * (1.0 + 1e-9)),
                "{ticks:?}"
            );
        }
        assert_eq!(ticks(&axis(3.0, 3.0, false), 6).len(), 1);
        assert_eq!(ticks(&axis(f64::NAN, f64::NAN, false), 6).len(), 1);
    }

    #[test]
    fn times_follow_the_calendar() {
        let day = |year, month, date| days(year, month, date) as f64 * DAY;
        let texts = |low, high| -> Vec<String> {
            ticks(&axis(low, high, true), 5).into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(day(2019, 12, 20), day(2020, 4, 3)), ["2020-01", "2020-02", "2020-03", "2020-04"]);
        assert_eq!(texts(day(1864, 1, 1), day(1932, 7, 1)), ["1880", "1900", "1920"]);
        assert_eq!(
            texts(day(2020, 2, 27), day(2020, 3, 2)),
            ["2020-02-27", "2020-02-28", "2020-02-29", "2020-03-01", "2020-03-02"]
        );
        assert_eq!(texts(0.0, 0.02)[1], "00:00:00.005");
        for number in [-1_000_000, -1, 0, 59, 60, 18_321, 1_000_000] {
            let (year, month, date) = civil(number);
            assert_eq!(days(year, month, date), number);
        }
    }
}
