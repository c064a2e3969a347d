//! Who asks for memory: line, operation, module path, phase and step, what the memory is for, and
//! the table (`intern.rs`) that makes of each origin a small number.

pub(crate) mod annotations;
pub(crate) mod calls;
pub(crate) mod context;
pub(crate) mod intern;
pub(crate) mod iteration;
pub(crate) mod kind;
pub(crate) mod site;

use crate::platform::fork::hold_at_fork;

/// Makes forks take the locks of the tables here. See Note [Lock order].
pub(crate) fn hold_tables_at_fork() {
    hold_at_fork(&[
        &intern::ORIGINS,
        &context::MODULES,
        &iteration::EPOCHS,
        &annotations::ANNOTATIONS,
    ]);
}
