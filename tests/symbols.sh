#!/bin/sh
# symbols.sh - names, lines and inlined functions of random addresses beside `llvm-symbolizer -i`. TAP: one line a library.
set -u
root=$(cd "${srcdir-.}" && pwd) || exit 1
build=$(cd "${builddir-.}" && pwd) || exit 1
library=$build/.libs/libmew_symbols.so
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT HUP INT TERM
number=0
failed=0

for tool in llvm-symbolizer nm c++filt; do
	command -v $tool >/dev/null || { echo "1..0 # SKIP $tool is not installed"; exit 0; }
done
[ -e "$library" ] && [ -x "$build/bench/symbols" ] || { echo "1..0 # SKIP built without libdw: no libmew_symbols.so"; exit 0; }

leave_out() { # NAME WHY
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}

# c++filt shows hashes of Rust's crates and types of its constants: core[0123456789abcdef], [u8; 1: usize]
demangled() {
	c++filt | sed 's/\[[0-9a-f]\{6,16\}\]//g; s/: \([ui][0-9]*\|[ui]size\|bool\|char\)\([],>]\)/\2/g'
}

# agree NAME MODULE [FILE-WITH-SYMBOLS]. The names of llvm-symbolizer are demangled by binutils: its own demangler writes
# some of them in another way.
agree() {
	number=$((number + 1))
	with=${3-$2}
	nm --defined-only "$with" | awk 'NF == 3 { print $1, $3 }' | demangled >"$work/nm"
	sh "$root/tests/fx_sym_addresses.sh" "$with" . 2000 7 >"$work/addresses"
	llvm-symbolizer -i --no-demangle --print-address --obj="$2" <"$work/addresses" | demangled >"$work/theirs"
	"$build/bench/symbols" print "$library" "$2" "$work/addresses" >"$work/ours" 2>"$work/notes"
	awk -v nm="$work/nm" -f "$root/tests/fx_sym_agree.awk" "$work/theirs" "$work/ours" >"$work/shares" 2>"$work/differences"
	read -r n names lines depth <"$work/shares" || n=0
	verdict="not ok"
	[ "$n" -gt 100 ] && awk "BEGIN { exit !($names >= 99.9 && $lines >= 99.5 && $depth >= 99) }" && verdict=ok
	echo "$verdict $number - $1: of $n addresses names ${names-} % lines ${lines-} % depth ${depth-} %"
	[ "$verdict" = ok ] && return
	failed=1
	cat "$work/differences"
	head -n 3 "$work/notes"
}

# shellcheck disable=SC2086 # the compiler and its flags are lists
build_and_agree() { # NAME COMPILER FLAGS SOURCES
	linking="-O2 -fPIC -shared -Wl,--build-id"
	[ "$2" != rustc ] || linking=
	if ! $2 $3 -g $linking -o "$work/it.so" $4 2>"$work/log"; then
		leave_out "$1" "it does not build here"
		return
	fi
	agree "$1" "$work/it.so"
}

has_debug_information() {
	readelf -SW "$1" 2>/dev/null | grep -q '\.debug_info'
}

large="$root/tests/fx_sym_large.cc"
build_and_agree "C++ by $CXX" "$CXX" -std=c++17 "$large"
if command -v rustc >/dev/null; then
	cat >"$work/it.rs" <<'END'
use std::collections::HashMap;
#[no_mangle]
pub extern "C" fn fx_count(n: u32) -> usize {
    let mut m: HashMap<String, Vec<u32>> = HashMap::new();
    for i in 0..n { m.entry(format!("{}", i % 7)).or_default().push(i); }
    m.values().map(|v| v.iter().filter(|x| **x % 3 == 0).count()).sum()
}
END
	build_and_agree "Rust by rustc" rustc "-O --crate-type cdylib -C symbol-mangling-version=v0" "$work/it.rs"
else
	leave_out "Rust by rustc" "rustc is not installed"
fi
if has_debug_information "$build/.libs/libmew.so"; then
	agree "C: libmew itself" "$build/.libs/libmew.so"
else
	leave_out "C: libmew itself" "it was built without debug information"
fi
if command -v clang++ >/dev/null; then
	build_and_agree "C++ by clang" clang++ -std=c++17 "$large"
	build_and_agree "C++ by clang, DWARF 4" clang++ "-std=c++17 -gdwarf-4" "$large"
else
	leave_out "C++ by clang" "clang++ is not installed"
fi
libc=$(ldd "$build/.libs/libmew.so" 2>/dev/null | awk '$1 ~ /^libc\.so/ { print $3 }')
id=$(readelf -n "$libc" 2>/dev/null | awk '/Build ID/ { print $3 }')
debug=/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug
if [ -n "$id" ] && [ -e "$debug" ]; then
	agree "C: the C library, by its debug file" "$libc" "$debug"
else
	leave_out "C: the C library, by its debug file" "its debug file is not installed (libc6-dbg)"
fi
echo "1..$number"
exit $failed
