//! An error and its causes as one line for the end of a program. Nothing here decides what an error means.
use std::error::Error;

/// The error's text, followed by the text of each cause that the line does not contain yet.
///
/// Many errors, kube's and ccm-core's among them, have the text of their cause in their own and return the cause as
/// [`Error::source`] too. A printed chain of such errors (`{:#}` of anyhow) repeats a cause once for each of them.
pub fn line(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    for cause in std::iter::successors(error.source(), |&cause| cause.source()) {
        let text = cause.to_string();
        if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Sample {
        #[error("no such file")]
        File,
        #[error("cannot read /nope: {0}")]
        Repeats(#[source] Box<Self>),
        #[error("the start failed")]
        Keeps(#[source] Box<Self>),
    }

    #[test]
    fn each_cause_stands_in_the_line_once() {
        let repeats = || Box::new(Sample::Repeats(Box::new(Sample::File)));
        let rows = [
            (Sample::File, "no such file"),
            (Sample::Repeats(Box::new(Sample::File)), "cannot read /nope: no such file"),
            (Sample::Keeps(Box::new(Sample::File)), "the start failed: no such file"),
            (Sample::Keeps(repeats()), "the start failed: cannot read /nope: no such file"),
        ];
        for (error, expected) in rows {
            assert_eq!(line(&error), expected);
        }
        let chain = anyhow::Error::from(Sample::Repeats(Box::new(Sample::File))).context("the demo cannot go on");
        assert_eq!(line(chain.as_ref()), "the demo cannot go on: cannot read /nope: no such file");
    }
}
