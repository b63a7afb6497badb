//! Tables for people: columns as wide as what is in them.
use comfy_table::Table;
use comfy_table::presets::NOTHING;

/// Rows under a heading, each line ended.
pub fn render<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(heading).add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
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
