//! The properties of the fuzz targets hold for every file of their corpora.

use std::fs;
use std::path::Path;

/// Passes each file of a target's corpus to the target. A failure names the last reported file.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    for file in files {
        // Shown when the test fails.
        println!("{}", file.display());
        run(&fs::read(&file).unwrap());
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name), fuzz_targets::$name::run);
        })*

        /// A corpus that no test replays would go stale, and so would a target without one.
        #[test]
        fn every_corpus_and_every_target_is_replayed() {
            let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
            let names = |folder: &str| {
                let entries = fs::read_dir(top.join(folder)).unwrap().map(|entry| entry.unwrap().path());
                let mut names: Vec<_> = entries.map(|path| path.file_stem().unwrap().to_owned()).collect();
                names.sort();
                names
            };
            let replayed: Vec<std::ffi::OsString> = vec![$(stringify!($name).into()),*];
            assert_eq!((names("corpus"), names("fuzz_targets")), (replayed.clone(), replayed));
        }
    };
}

targets! { bridge config control flood forwarding frame pcap ports program scenario sla tcp transit }
