//! Tables for people: columns as wide as what is in them.

/// Rows under a heading, each line ended.
pub fn render<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heading.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let heading = heading.map(String::from);
    let lines = std::iter::once(&heading).chain(rows).map(|row| line(row, &widths));
    lines.collect()
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
    format!("{}\n", cells.join("  ").trim_end())
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "running"], ["longer", ""]].map(|row| row.map(String::from));
        assert_eq!(render(["NAME", "STATE"], &rows), "NAME    STATE\na       running\nlonger\n");
    }
}
