#!/bin/sh
# completion.sh - what bash and fish offer when a line that begins with mew is completed; that zsh can read its file. Prints
# TAP.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/completion.sh
set -u
# shellcheck disable=SC2154 # make sets them
here=$(cd "$srcdir/tests" && pwd) || exit 99
files=$(cd "$srcdir/tools/completion" && pwd) || exit 99
# shellcheck disable=SC2154 # make sets it
mew=$builddir/mew
# shellcheck source=tests/tap.sh
. "$here/tap.sh"
mkdir files files/folder bin
touch files/one.json files/two.json.gz files/three.txt
ln -s "$mew" bin/mew
PATH=$work/bin:$PATH
cd files || exit 99

offers() { # NAME WANTED...: each is a line of out, and nothing else is
	name=$1
	shift
	printf '%s\n' "$@" | sort >wanted
	sort out | sed 's:/$::' >got
	status=0
	cmp -s wanted got || status=1
	result "$name" $status "offered: $(tr '\n' ' ' <got)"
	rm -f wanted got
}

all_flags() { # COMMAND
	"$mew" "$1" --help | sed -n 's/^  \(--*[A-Za-z-]*\).*/\1/p'
}

if command -v bash >/dev/null 2>&1; then
	words() { # WORD...: the last one is completed
		# shellcheck disable=SC2016 # for bash
		run bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
			_mew "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
			printf "%s\n" "${COMPREPLY[@]}" | grep -v "^out$\|^err$"' bash "$files/mew" "$@"
	}
	words mew tra
	offers "bash: commands" trace-check
	words mew gate --tr
	offers "bash: flags of the command" --trace
	for command in run gate compare; do
		words mew $command -
		# shellcheck disable=SC2046 # flags are words
		offers "bash: every flag of $command" $(all_flags $command)
	done
	words mew run --trace = ''
	offers "bash: --trace= offers *.json and folders" one.json two.json.gz folder
	words mew run --json o
	offers "bash: --json offers *.json" one.json
	words mew run --trace t
	offers "bash: a value that must stand behind = is not offered elsewhere" two.json.gz three.txt
	words mew run --color a
	offers "bash: words that a flag knows" auto always
	words mew trace-check ''
	offers "bash: saved files for a command that reads them" one.json two.json.gz folder
else
	skip "bash" "bash is not installed"
fi
if command -v fish >/dev/null 2>&1; then
	words() { # LINE
		HOME=$work run fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$files/mew.fish" "$1"
		cut -f1 out | grep -v '^out$\|^err$' >shown
		mv shown out
	}
	words 'mew tra'
	offers "fish: commands" trace-check
	words 'mew gate --tra'
	offers "fish: flags of the command" --trace
	words 'mew run --json o'
	offers "fish: --json offers *.json" one.json
else
	skip "fish" "fish is not installed"
fi
if command -v zsh >/dev/null 2>&1; then
	run zsh -n "$files/_mew"
	check "zsh: the file can be read" 0
else
	skip "zsh" "zsh is not installed"
fi
finish
