//! Whether kernels wait for their turn, read off the compiler's assembly: see
//! Note [Launches that overlap] in `kernel.rs`. The sources say so themselves, but what a compiler
//! makes of them is its own: with `--restrict` it may take what a kernel only reads for unchanging.

use std::collections::HashSet;

/// The first compute capability whose launches may overlap.
pub(crate) const OVERLAPS_FROM: u32 = 90;

/// The first kernel of `assembly` that may touch the GPU's memory before its turn, and by what;
/// `None` if all wait.
pub(crate) fn out_of_turn(assembly: &str) -> Option<String> {
    let bodies = bodies(assembly);
    let kernels = assembly.lines().filter(|line| code_of(line).contains(ENTRY)).count();
    let read = bodies.iter().filter(|body| body.is_kernel).count();
    // A text may have no kernels, but never no first line.
    if read != kernels || !assembly.contains(".version") {
        return Some(format!("{read} of {kernels} kernels could be read"));
    }
    let tables = tables(assembly);
    bodies.iter().find_map(|body| {
        let breach = match body.is_kernel.then(|| before_turn(&body.instructions)).flatten() {
            None => unordered_load(&body.instructions, &tables)?,
            Some(breach) => breach,
        };
        Some(format!("`{}`: {breach}", body.name))
    })
}

struct Body<'a> {
    name: &'a str,
    is_kernel: bool,
    instructions: Vec<Instruction<'a>>,
}

struct Instruction<'a> {
    text: &'a str,
    is_conditional: bool,
    /// Its name and what follows the name's dots.
    name: Vec<&'a str>,
    operands: Vec<&'a str>,
}

impl<'a> Instruction<'a> {
    fn new(text: &'a str) -> Option<Instruction<'a>> {
        let text = text.trim().trim_start_matches(['{', '}']).trim_start();
        let condition =
            text.strip_prefix('@').and_then(|rest| rest.split_once(char::is_whitespace));
        let rest = condition.map_or(text, |(_, rest)| rest.trim_start());
        let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if !name.starts_with(|first: char| first.is_ascii_lowercase()) || name.ends_with(':') {
            return None;
        }
        let ends = [',', ' ', '\t', '[', ']', '{', '}', '+'];
        Some(Instruction {
            text,
            is_conditional: condition.is_some(),
            name: name.split('.').collect(),
            operands: operands.split(ends).filter(|operand| !operand.is_empty()).collect(),
        })
    }

    /// Whether it reads or writes memory that other kernels may, or leads elsewhere.
    fn is_early(&self) -> bool {
        let is_own = |space: &&str| {
            matches!(*space, "param" | "local" | "const") || space.starts_with("shared")
        };
        match self.name[0] {
            "ld" | "st" => !self.name.iter().any(is_own),
            "ldu" | "atom" | "red" | "cp" | "prefetch" | "prefetchu" | "tex" | "suld" | "sust" => {
                true
            }
            "call" | "bra" | "brx" | "ret" | "exit" => true,
            _ => false,
        }
    }
}

/// What announces a kernel.
const ENTRY: &str = ".entry ";

/// A line without its comment.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// The functions of `assembly`.
fn bodies(assembly: &str) -> Vec<Body<'_>> {
    let mut bodies: Vec<Body<'_>> = Vec::new();
    let mut head = None;
    let mut depth = 0;
    for line in assembly.lines() {
        let line = code_of(line);
        if depth == 0 {
            for (word, is_kernel) in [(ENTRY, true), (".func ", false)] {
                if let Some((_, rest)) = line.split_once(word) {
                    let name = rest.rsplit(')').next().unwrap_or(rest).trim();
                    let name = if is_kernel { rest } else { name };
                    head = Some((name.split('(').next().unwrap_or(name).trim(), is_kernel));
                }
            }
            if line.trim() == "{" {
                let (name, is_kernel) = head.take().unwrap_or(("?", true));
                bodies.push(Body { name, is_kernel, instructions: Vec::new() });
                depth = 1;
            }
            continue;
        }
        depth += line.matches('{').count();
        depth -= line.matches('}').count().min(depth);
        if let (1.., Some(body)) = (depth, bodies.last_mut()) {
            body.instructions.extend(line.split(';').filter_map(Instruction::new));
        }
    }
    bodies
}

/// The names of tables that belong to the code, which nobody writes.
fn tables(assembly: &str) -> HashSet<&str> {
    let lines = assembly.lines().filter(|line| line.contains(".global .align"));
    lines.filter_map(|line| line.split('[').next()?.split_whitespace().next_back()).collect()
}

/// What comes before a kernel's wait and must not.
fn before_turn(instructions: &[Instruction<'_>]) -> Option<String> {
    for instruction in instructions {
        if instruction.name == ["griddepcontrol", "wait"] && !instruction.is_conditional {
            return None;
        }
        if instruction.is_early() {
            return Some(format!("`{}` comes before its wait", instruction.text));
        }
    }
    Some("it does not wait".to_string())
}

/// A load that heeds no wait, but for those of tables.
fn unordered_load(instructions: &[Instruction<'_>], tables: &HashSet<&str>) -> Option<String> {
    let is_unordered = |instruction: &&Instruction<'_>| {
        instruction.name[0] == "ld" && instruction.name.contains(&"nc")
    };
    if !instructions.iter().any(|instruction| is_unordered(&instruction)) {
        return None;
    }
    // Registers that hold addresses within tables, whatever order their loops have them in.
    let mut within = tables.clone();
    loop {
        let known = within.len();
        for instruction in instructions.iter().filter(|instruction| instruction.name[0] != "ld") {
            if let [to, from @ ..] = &instruction.operands[..]
                && from.iter().any(|operand| within.contains(operand))
            {
                within.insert(to);
            }
        }
        if within.len() == known {
            break;
        }
    }
    let mut loads = instructions.iter().filter(is_unordered);
    let loads_elsewhere = loads.find(|load| {
        let address = load.text.split_once('[').map_or("", |(_, address)| address);
        !address.split([']', '+']).next().is_some_and(|address| within.contains(address.trim()))
    })?;
    Some(format!("`{}` heeds no wait", loads_elsewhere.text))
}

#[cfg(test)]
mod tests {
    use super::out_of_turn;

    fn kernel(lines: &str) -> String {
        format!(
            ".version 9.0\n.global .align 4 .b8 table[8] = {{1, 2, 3, 4, 5, 6, 7, 8}};\n\n\
             .visible .entry add_f32(\n\t.param .u64 add_f32_param_0\n)\n.maxntid 256\n{{\n\
             \t.reg .b64 \t%rd<9>;\n\n\tld.param.u64 \t%rd1, [add_f32_param_0];\n{lines}\n\tret;\n\n}}\n"
        )
    }

    const WAIT: &str = "\t// begin inline asm\n\tgriddepcontrol.wait;\n\t// end inline asm\n";

    #[test]
    fn what_comes_after_the_wait_is_in_turn() {
        let own = "\tst.local.u64 \t[%rd3], %rd1;\n\tst.shared.u32 \t[%r2], %r3;\n";
        let rest = "$L__BB0_1:\n\tld.global.u32 \t%r1, [%rd1];\n\t@%p1 bra \t$L__BB0_1;\n\
                    \tst.global.v4.u32 \t[%rd1+16], {%r1, %r1, %r1, %r1};";
        assert_eq!(out_of_turn(&kernel(&format!("{own}{WAIT}{rest}"))), None);
    }

    #[test]
    fn a_kernel_that_does_not_wait_or_waits_late_is_named() {
        let told = |lines: &str| out_of_turn(&kernel(lines)).unwrap();
        assert_eq!(told("\tadd.s64 \t%rd2, %rd1, 4;"), "`add_f32`: `ret` comes before its wait");
        let early = [
            "ld.global.u32 \t%r1, [%rd1]",
            "ld.u32 \t%r1, [%rd1]",
            "st.global.u32 \t[%rd1], %r1",
            "atom.global.add.u32 \t%r2, [%rd1], 1",
            "cp.async.cg.shared.global [%r1], [%rd1], 16",
            "@%p1 bra \t$L__BB0_2",
            "call.uni \n\tother, \n\t(\n\t)",
        ];
        for early in early {
            let told = told(&format!("\t{early};\n{WAIT}"));
            let shown = early.split(" \n").next().unwrap();
            assert_eq!(told, format!("`add_f32`: `{shown}` comes before its wait"));
        }
        let told = told("\t@%p1 griddepcontrol.wait;");
        assert_eq!(told, "`add_f32`: `ret` comes before its wait");
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_waiting() {
        let told = |assembly: &str| out_of_turn(assembly).unwrap();
        assert_eq!(told(""), "0 of 0 kernels could be read");
        assert_eq!(out_of_turn(".version 9.0\n.target sm_90\n"), None);
        let on_one_line = kernel(WAIT).replace("\n)\n.maxntid 256\n{", "\n) {");
        assert_eq!(told(&on_one_line), "0 of 1 kernels could be read");
    }

    #[test]
    fn loads_that_heed_no_wait_are_of_tables_alone() {
        let of = |lines: &str| out_of_turn(&kernel(&format!("{WAIT}{lines}")));
        let table = "\tmov.u64 \t%rd4, table;\n$L__BB0_1:\n\tld.global.nc.u32 \t%r1, [%rd6+4];\n\
                     \tadd.s64 \t%rd6, %rd5, 4;\n\tshl.b64 \t%rd3, %rd7, 2;\n\tadd.s64 \t%rd5, %rd4, %rd3;";
        assert_eq!(of(table), None);
        let told = of("\tld.global.L1::no_allocate.nc.u32 \t%r1, [%rd1+8];").unwrap();
        assert_eq!(
            told,
            "`add_f32`: `ld.global.L1::no_allocate.nc.u32 \t%r1, [%rd1+8]` heeds no wait"
        );
        // What a table holds is no address within it.
        let held = "\tmov.u64 \t%rd4, table;\n\tld.global.u64 \t%rd5, [%rd4];\n\tld.global.nc.u32 \t%r1, [%rd5];";
        assert!(of(held).unwrap().contains("[%rd5]"));
    }

    #[test]
    fn functions_that_kernels_call_need_no_wait_but_heed_it() {
        let function = |load: &str| {
            let head =
                ".func  (.param .b32 func_retval0) helper(\n\t.param .b64 helper_param_0\n)\n{\n";
            format!("{}{head}\t{load}\n\tret;\n\n}}\n", kernel(WAIT))
        };
        assert_eq!(out_of_turn(&function("ld.global.u32 \t%r1, [%rd1];")), None);
        let told = out_of_turn(&function("ld.global.nc.u32 \t%r1, [%rd1];")).unwrap();
        assert!(told.starts_with("`helper`"), "{told}");
    }
}
