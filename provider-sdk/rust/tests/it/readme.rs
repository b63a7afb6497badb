//! The README shows code that compiles: the example's own.

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let readme = include_str!("../../README.md");
    let example = include_str!("../../examples/one_look_up.rs");
    let code = example.split_once("\nuse ").unwrap().1;

    assert!(readme.contains(code), "copy examples/one_look_up.rs from its first `use` on into README.md");
}
