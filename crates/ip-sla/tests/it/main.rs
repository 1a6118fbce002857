//! Integration tests of operations and responder, one program.

mod operations;
mod responder;
