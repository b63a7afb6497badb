//! The report as JUnit XML, which CI systems show. One test suite for each profile.
use std::fmt::Write as _;

use super::{CaseReport, Outcome, Report, text};

/// The XML document.
pub fn xml(report: &Report) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"provider-conformance\">\n");
    for name in report.profiles.keys() {
        let cases: Vec<_> = report.cases.iter().filter(|case| case.id.split('/').next() == Some(name)).collect();
        let failed = cases.iter().filter(|case| matches!(case.outcome, Outcome::Failed(_))).count();
        let skipped = cases.iter().filter(|case| matches!(case.outcome, Outcome::Skipped { .. })).count();
        // Writing to a String does not fail.
        let _ =
            writeln!(xml, "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\">", cases.len());
        cases.into_iter().for_each(|case| xml += &test_case(case));
        xml += "  </testsuite>\n";
    }
    xml + "</testsuites>\n"
}

fn test_case(case: &CaseReport) -> String {
    let seconds = std::time::Duration::from_millis(case.millis).as_secs_f64();
    let (id, title) = (escaped(case.id), escaped(case.title));
    let inside = match &case.outcome {
        Outcome::Passed => String::new(),
        Outcome::Skipped { reason, .. } => format!("<skipped message=\"{}\"/>", escaped(reason)),
        Outcome::Failed(failure) => {
            let message = escaped(&format!("{} {}", failure.rule, failure.what));
            format!("<failure message=\"{message}\">{}</failure>", escaped(&text::failed(case, failure)))
        }
    };
    format!("    <testcase classname=\"{id}\" name=\"{title}\" time=\"{seconds}\">{inside}</testcase>\n")
}

/// The text with XML's own characters escaped, and without those that XML cannot have.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn what_xml_cannot_have_is_escaped_or_replaced() {
        assert_eq!(escaped("a<b> & \"c\"\u{1}"), "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}");
    }
}
