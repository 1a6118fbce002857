//! The command line of `qos-router`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use netio::program_end::{end, print, Failure};
use qos_router::daemon::{self, Routers};
use qos_router::{client, schema};

/// Data plane of a router, or of all routers of a lab: classifies, marks, polices, queues and shapes the frames of
/// their ports.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Option<Run>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon (the same as giving the options without a subcommand)
    Run(Run),
    /// Send one request to a running daemon and print its reply; exit status 1 when it is refused
    Ctl(Ctl),
    /// Print a JSON Schema
    Schema {
        /// Type of the schema
        of: Schema,
    },
}

#[derive(Debug, Args)]
struct Run {
    /// Name of the router
    #[arg(long, required_unless_present = "lab", requires_all = ["ports", "control"])]
    name: Option<String>,
    /// File with the wiring of the ports
    #[arg(long, requires = "name")]
    ports: Option<PathBuf>,
    /// Path of the control socket
    #[arg(long, requires = "name")]
    control: Option<PathBuf>,
    /// File with the routers of a lab, in place of name, ports, control socket and namespace of one
    #[arg(long, conflicts_with_all = ["name", "ports", "control", "kernel_netns"])]
    lab: Option<PathBuf>,
    /// Departures later than this many nanoseconds are counted in health's late_over_budget
    #[arg(long, default_value_t = 5_000_000)]
    budget: u64,
    /// Milliseconds of shortest frames at the link's rate for which the receive rings have room
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    ring_ms: u64,
    /// Nanoseconds before a departure from which to wait actively for its time, in addition to the kernel's wake-up
    /// time (0: never)
    #[arg(long, default_value_t = daemon::DEFAULT_SPIN_NS)]
    spin: u64,
    /// Network namespace of the router's own IP stack, from which IP SLA sends its probes; without it there is no IP
    /// SLA
    #[arg(long)]
    kernel_netns: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Ctl {
    /// The daemon's control socket
    #[arg(long)]
    control: PathBuf,
    /// Only this interface (counters, clear)
    #[arg(long)]
    interface: Option<String>,
    /// hello, configure, config, counters, resolve, clear, health, ip_sla or shutdown
    op: String,
    /// The configuration to send with configure (- for standard input)
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Schema {
    /// The configuration
    Config,
    /// The reply to counters
    Counters,
    /// The reply to resolve
    Resolve,
    /// The wiring of the ports
    Ports,
    /// The routers of a lab
    Lab,
    /// The reply to ip_sla
    IpSla,
    /// The rules of policy-maps, themselves rather than their schema
    Rules,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // clap has printed the help if there were no arguments.
    let Some(command) = cli.command.or(cli.run.map(Command::Run)) else { return ExitCode::from(2) };
    let result = match command {
        Command::Run(run) => start(run).map(|()| true),
        Command::Ctl(ctl) => control(&ctl),
        Command::Schema { of } => {
            let text = match of {
                Schema::Config => schema::config(),
                Schema::Counters => schema::counters(),
                Schema::Resolve => schema::resolve(),
                Schema::Ports => schema::ports(),
                Schema::Lab => schema::lab(),
                Schema::IpSla => schema::ip_sla(),
                Schema::Rules => schema::rules(),
            };
            print(&text).map(|()| true)
        }
    };
    match result {
        // The reply gives the reason.
        Ok(false) => ExitCode::FAILURE,
        result => end("qos-router", result.map(drop)),
    }
}

fn start(run: Run) -> Result<(), Failure> {
    let Run { name, ports, control, lab, budget, ring_ms, spin, kernel_netns } = run;
    let routers = match (lab, name, ports, control) {
        (Some(lab), ..) => Routers::Lab(lab),
        (None, Some(name), Some(ports), Some(control)) => Routers::One { name, ports, control, kernel_netns },
        // The rules of clap for these options accept nothing else.
        _ => return Err(Failure::Failed("expected --lab, or --name with --ports and --control".to_owned())),
    };
    let options = daemon::Options { routers, budget_ns: budget, ring_ns: ring_ms * 1_000_000, spin_ns: spin };
    daemon::run(&options).map_err(|error| Failure::Failed(error.to_string()))
}

/// Returns whether the daemon carried out the request.
fn control(ctl: &Ctl) -> Result<bool, Failure> {
    let request = client::request(&ctl.op, ctl.file.as_deref(), ctl.interface.as_deref());
    let reply = request.and_then(|request| client::send(&ctl.control, &request));
    let reply = reply.map_err(|error| Failure::Failed(error.to_string()))?;
    match print(&reply) {
        Ok(()) | Err(Failure::ReaderGone) => {}
        Err(failure) => return Err(failure),
    }
    Ok(serde_json::from_str::<serde_json::Value>(&reply).is_ok_and(|reply| reply["ok"] == true))
}
