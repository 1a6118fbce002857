//! The command line of `qos-pcap`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;

use netio::program_end::{end, Failure};
use qos_pcap::capture::Capture;
use qos_pcap::columns::Columns;

/// Reads a packet capture (pcap or pcapng, gzip or not) and writes its packets to standard output as columns of binary
/// numbers; docs/reference/captures.md has the form.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    /// The capture
    file: PathBuf,
    /// Packets that are written at a time
    #[arg(long, default_value_t = 250_000, value_parser = clap::value_parser!(u32).range(1..))]
    piece: u32,
    /// Bytes after the IP header by which a packet is recognised, if that many were captured
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(8..=1024))]
    behind: u16,
    /// Interface that matters, by name or number: packets of others are left out if their link type is unknown.
    /// Repeatable. [default: all]
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
}

fn main() -> ExitCode {
    end("qos-pcap", write(&Cli::parse()))
}

fn write(cli: &Cli) -> Result<(), Failure> {
    let file = open(&cli.file)?;
    let mut output = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let gone = |error: io::Error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::Failed(format!("cannot write to standard output: {error}")),
    };
    writeln!(output, "{}", json!({"format": 1, "columns": Columns::NAMES})).map_err(gone)?;
    let mut columns = Columns::new(cli.behind.into());
    let (mut packets, mut problem, mut interfaces) = (0_u64, None, Vec::new());
    match Capture::new(file, &cli.interfaces) {
        Err(why) => problem = Some(why),
        Ok(mut capture) => {
            loop {
                match capture.next_packet() {
                    Ok(Some(packet)) => {
                        packets += 1;
                        columns.push(packet);
                        if columns.len() == cli.piece as usize {
                            columns.write(&mut output).map_err(gone)?;
                        }
                    }
                    Ok(None) => break,
                    Err(why) => {
                        problem = Some(why);
                        break;
                    }
                }
            }
            interfaces = capture.interfaces().to_vec();
        }
    }
    if !columns.is_empty() {
        columns.write(&mut output).map_err(gone)?;
    }
    writeln!(output, "{}", json!({"packets": packets, "problem": problem, "interfaces": interfaces})).map_err(gone)?;
    output.flush().map_err(gone)
}

fn open(path: &Path) -> Result<File, String> {
    let wrong = |error: io::Error| format!("cannot be read: {error}");
    let file = File::open(path).map_err(wrong)?;
    if file.metadata().map_err(wrong)?.is_dir() {
        return Err("cannot be read: it is a folder".to_owned());
    }
    Ok(file)
}
