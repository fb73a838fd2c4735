#!/bin/sh
# shellcheck disable=SC2154 # make sets srcdir and builddir
#
# compare.sh - saved results side by side as a user meets it: tables, files, what is named, and the gate's exit codes.
# Prints TAP. The results are written here, so that every figure is known.
#
# builddir and srcdir come from make; run by hand: builddir=BUILD srcdir=. sh tests/compare.sh
set -u
mew=$builddir/mew
case $srcdir in
/*) golden=$srcdir/tests/golden ;;
*) golden=$PWD/$srcdir/tests/golden ;;
esac
# shellcheck source=tests/tap.sh
. "$srcdir/tests/tap.sh"
COLUMNS=80
export COLUMNS

lacks() { # NAME PATTERN: of the last output
	status=0
	if grep -q -- "$2" out; then status=1; fi
	result "$1" $status
}

same_as() { # NAME GOLDEN FILE
	if [ -n "${MEW_GOLDEN_UPDATE-}" ]; then
		cp "$3" "$golden/$2"
	fi
	status=0
	diff "$golden/$2" "$3" >out 2>err || status=1
	result "$1" $status
}

# Another C library may differ in the last digits of a logarithm.
rounded() {
	awk '{
		line = ""
		while (match($0, /[0-9]+\.[0-9]+(e-?[0-9]+)?/)) {
			line = line substr($0, 1, RSTART - 1) sprintf("%.6g", substr($0, RSTART, RLENGTH))
			$0 = substr($0, RSTART + RLENGTH)
		}
		print line $0
	}'
}

# results FILE [CPU [COMPILER]] <CASES: a line each of
#   KEY LABEL TIMES ALLOCS BYTES PEAK ITERATIONS
# TIMES are ns per iteration, a process each, joined by commas. "-" leaves out a label, the times or the memory row.
results() {
	awk -v cpu="${2-Imaginary 9000}" -v compiler="${3-gcc 12.2.0}" '
		function time_row(   i, n, t, runs) {
			n = split($3, t, ",")
			for (i = 1; i <= n; i++)
				runs = runs (i > 1 ? "," : "") "{\"phase\":\"measurement/value\",\"process\":" (i - 1) \
					",\"repetition\":0,\"loops\":1000,\"context_switches\":0,\"migrations\":0,\"page_faults\":0," \
					sprintf("\"real_ns\":[%.0f,%.0f,%.0f]}", t[i] * 1000, t[i] * 1001, t[i] * 999)
			return ",\"time\":{\"status\":\"MEW_OK\",\"profiler\":\"loop\",\"median_ns\":" t[1] "},\"runs\":[" runs "]"
		}
		function memory_row() {
			return ",\"memory\":{\"status\":\"MEW_OK\",\"profiler\":\"hooks\",\"allocations_per_iteration\":" $4 \
				",\"bytes_per_iteration\":" $5 ",\"peak_bytes\":" $6 ",\"iterations\":" $7 "}"
		}
		BEGIN {
			printf "{\"schema\":1,\"mew\":\"0\",\"environment\":{\"cpu_model\":\"%s\",\"date\":\"%s\",", cpu, FILENAME
			printf "\"compiler\":\"%s\"},\"grade\":null,\"hooks\":\"\",\"cases\":[", compiler
		}
		{
			printf "%s{\"key\":\"%s\",\"label\":%s,\"program\":\"./bench\",\"tags\":null,\"threads\":1,", (NR > 1 ? "," : ""), $1,
				($2 == "-" ? "null" : "\"" $2 "\"")
			printf "\"bytes_per_iteration\":0,\"items_per_iteration\":0"
			printf "%s%s}", ($3 == "-" ? "" : time_row()), ($4 == "-" ? "" : memory_row())
		}
		END { print "]}" }' >"$1"
}

ten() { # NS: ten processes around it
	awk -v t="$1" 'BEGIN { for (i = 0; i < 10; i++) printf "%s%.3f", i ? "," : "", t * (1 + (i - 4.5) / 10000) }'
}

# --- a comparison in full

results base.json <<EOF
zlib/inflate - $(ten 1000) 5 4096 65536 100
zlib/deflate/case:0 level1 $(ten 2000) 5 4096 65536 100
zlib/deflate/case:1 level6 $(ten 3000) 5 4096 65536 100
parse - $(ten 400) 100 8000 9000 100
noisy - 100,200,100,200,100,200,100,200,100,200 0 0 0 100
gone - $(ten 10) 0 0 0 100
EOF
results head.json "Imaginary 9000" "clang 14.0.6" <<EOF
zlib/inflate - $(ten 1100) 5 4096 65536 100
zlib/deflate/case:0 level1 $(ten 1000) 5 4096 65536 100
zlib/deflate/case:1 level6 $(ten 3003) 6 4096 65536 100
parse - $(ten 400) 90 8000 9900 100
noisy - 200,100,200,100,200,100,200,100,200,100 0 0 0 100
added - $(ten 10) 0 0 0 100
EOF
run "$mew" compare base.json head.json --markdown c.md --csv c.csv --json c.json
check "two files: a table, and no verdict as exit code" 0 'zlib/inflate .* slower' 'wrote c.md'
cp out table.txt
check "a faster case" 0 'zlib/deflate \[level1\] .* faster'
check "a case within the margin" 0 'zlib/deflate \[level6\] .* within 2 %'
check "a case that is too noisy to tell" 0 'noisy .* not resolved'
check "a case that is missing" 0 '^missing from the head: gone'
check "a case that is new" 0 '^new in the head: added'
check "a compiler that differs" 0 'compiler: gcc 12.2.0, now clang 14.0.6'
check "one allocation more" 0 'allocs/iter .* 5 .* 6 .* more'
check "the geometric mean of the common cases" 0 'of 5 cases: 0\.887'
lacks "the same machine is no warning" 'warning'
lacks "dates are not compared" 'differs: date'
same_as "the table, as agreed" compare_80.txt table.txt
same_as "the Markdown, as agreed" compare.md c.md
rounded <c.csv >r.csv
same_as "the CSV, as agreed" compare.csv r.csv
sed 's/"mew": *"[^"]*"/"mew": "VERSION"/' c.json | rounded >r.json
same_as "the JSON, as agreed" compare.json r.json
awk 'length($0) > 80 { exit 1 }' table.txt
result "no line is wider than the terminal" $?
run "$mew" compare base.json head.json --csv -
check "a file on standard output comes without the table" 0 '^base_file,'
lacks "... alone" '95 % range'
run "$mew" compare -k '^zlib' base.json head.json
lacks "-k leaves the others out" 'parse'
run "$mew" compare -v base.json base.json
check "-v lists what is equal" 0 'allocs/iter .* equal'

# --- the gate

# gate NAME CODE BASE-LINE HEAD-LINE [FLAG...]: the word is that of the code, unless a flag has changed the code
gate() {
	gate_name=$1 gate_code=$2
	case $gate_code:$* in
	*--inconclusive*) gate_word=inconclusive ;;
	0:*) gate_word=pass ;;
	1:*) gate_word=regression ;;
	3:*) gate_word=inconclusive ;;
	*) gate_word=invalid ;;
	esac
	echo "$3" | results b.json
	echo "$4" | results h.json
	shift 4
	run "$mew" compare --gate "$@" b.json h.json
	check "$gate_name" "$gate_code" "^gate: $gate_word\\(:\\|$\\)"
}

mem="5 100 200 100"
gate "the same is a pass" 0 "a - $(ten 100) $mem" "a - $(ten 100) $mem"
gate "slower is a regression" 1 "a - $(ten 100) $mem" "a - $(ten 103) $mem"
gate "faster is a pass" 0 "a - $(ten 100) $mem" "a - $(ten 90) $mem"
gate "slower within the margin is a pass" 0 "a - $(ten 100) $mem" "a - $(ten 101) $mem"
gate "a tighter margin makes it a regression" 1 "a - $(ten 100) $mem" "a - $(ten 101) $mem" --limit time=0.5%
gate "a wider one lets more pass" 0 "a - $(ten 100) $mem" "a - $(ten 109) $mem" --limit time=10%
gate "5 pairs are inconclusive" 3 "a - 1,1,1,1,1 $mem" "a - 2,2,2,2,2 $mem"
gate "6 pairs decide" 1 "a - 1,1,1,1,1,1 $mem" "a - 2,2,2,2,2,2 $mem"
gate "of 9 and 5 processes 5 pairs are made" 3 "a - 1,1,1,1,1,1,1,1,1 $mem" "a - 2,2,2,2,2 $mem"
gate "one process is inconclusive, however much slower" 3 "a - 1 $mem" "a - 9 $mem"
gate "--inconclusive pass" 0 "a - 1 $mem" "a - 9 $mem" --inconclusive pass
gate "--inconclusive fail" 1 "a - 1 $mem" "a - 1 $mem" --inconclusive fail
run "$mew" compare --gate --inconclusive fail --markdown - b.json h.json
check "... which the Markdown does not call a regression" 1 '^\*\*inconclusive\*\*$'
run "$mew" compare --gate --inconclusive fail --json - b.json h.json
lacks "... nor the JSON" '"verdict": *"regression"'
gate "one allocation more is a regression, although faster" 1 "a - $(ten 100) 5 100 200 100" "a - $(ten 50) 5.01 100 200 100"
gate "one fewer is a pass" 0 "a - $(ten 100) 5 100 200 100" "a - $(ten 100) 4 100 200 100"
gate "... but not with --strict" 1 "a - $(ten 100) 5 100 200 100" "a - $(ten 100) 4 100 200 100" --strict
gate "a peak within its limit" 0 "a - - 5 100 200 100" "a - - 5 100 220 100" --limit peak=10%
gate "a peak beyond its limit" 1 "a - - 5 100 200 100" "a - - 5 100 221 100" --limit peak=10%
gate "units or percent, whichever is more" 0 "a - - 2 100 200 100" "a - - 3 100 200 100" --limit 'allocs=1|5%'
gate "a missing memory row is invalid" 4 "a - $(ten 100) $mem" "a - $(ten 100) - - - -"
check "... and says where it is" 4 'measured in the base alone'
gate "other iterations are invalid" 4 "a - - 5 100 200 100" "a - - 5 100 200 200"
for name in a b c d e f g; do echo "$name - - 5 100 200 100"; done >few
sed 's/100$/200/' few >many
gate "... with each case that it is" 4 "$(cat few)" "$(cat many)"
check "... of seven, two are counted" 4 'and 2 more:'
gate "another label is other work" 4 "a 1k $(ten 100) $mem" "a 2k $(ten 100) $mem"
gate "a missing case is invalid" 4 "a - $(ten 100) $mem
b - $(ten 100) $mem" "a - $(ten 100) $mem"
gate "a new case is invalid too: the keys must be the same" 4 "a - $(ten 100) $mem" "a - $(ten 100) $mem
b - $(ten 100) $mem"
check "... and says so" 4 '^gate: invalid: the head has cases that the base lacks$'
run "$mew" compare --gate --markdown - b.json h.json
check "... also in Markdown" 4 '^\*\*invalid\*\*: the head has cases'
gate "unless only the common ones are asked for" 0 "a - $(ten 100) $mem" "a - $(ten 100) $mem
b - $(ten 100) $mem" -k '^a$'
results b.json <<EOF
a - $(ten 100) $mem
EOF
sed 's/"profiler":"loop"/"profiler":"latency"/' b.json >h.json
run "$mew" compare --gate b.json h.json
check "single calls and loops do not compare" 4 'timed in another way'
gate "nothing in common is invalid" 4 "a - $(ten 100) $mem" "b - $(ten 100) $mem"
gate "6 pairs are too few among many cases" 3 "a - 1,1,1,1,1,1 $mem
b - 1,1,1,1,1,1 $mem" "a - 2,2,2,2,2,2 $mem
b - 1,1,1,1,1,1 $mem"
gate "but not for two faster ones to pass" 0 "a - 1,1,1,1,1,1 $mem
b - 1,1,1,1,1,1 $mem" "a - 0.5,0.5,0.5,0.5,0.5,0.5 $mem
b - 0.5,0.5,0.5,0.5,0.5,0.5 $mem"
check "... which are not called faster" 0 'a .* at most 2 % slower'
gate "the classic rule: 4 pairs" 3 "a - 1,1,1,1 $mem" "a - 2,2,2,2 $mem" --rule bootstrap
gate "the classic rule: 5 pairs" 1 "a - 1,1,1,1,1 $mem" "a - 2,2,2,2,2 $mem" --rule bootstrap
gate "the classic rule: no more than the least difference" 3 "a - 1,1,1,1,1 $mem" "a - 2,2,2,2,2 $mem" --rule bootstrap \
	--least-difference 2e-9
run "$mew" compare --gate --least-difference 2e-9 b.json h.json
complains "... which says nothing to the rule of signs" 2 'give --rule bootstrap too'

results elsewhere.json "Imaginary 1" <<EOF
a - $(ten 100) $mem
EOF
echo "a - $(ten 200) $mem" | results here.json
run "$mew" compare --gate elsewhere.json here.json
check "timings of another machine are no evidence" 3 'context, not evidence'
check "... and the machine is named" 3 'cpu_model: Imaginary 1, now Imaginary 9000'
echo "a - $(ten 200) 6 100 200 100" | results here.json
run "$mew" compare --gate elsewhere.json here.json
check "... but its allocations are" 1 'allocs/iter .* more'

# --- allow rules

echo "a - $(ten 100) $mem" | results b.json
echo "a - $(ten 100) 6 100 200 100" | results h.json
echo '[{"cases":"a*","metric":"allocs","limit":"1","reason":"the new index","expires":"2999-12-31"}]' >allow.json
run "$mew" compare --gate --allow allow.json b.json h.json
check "an allow rule loosens, and its reason is shown" 0 'allowed by a rule: the new index'
sed 's/2999/2001/' allow.json >old.json
run "$mew" compare --gate --allow old.json b.json h.json
check "an expired one does not, and says so" 1 'expired after'
sed 's/a\*/b*/' allow.json >none.json
run "$mew" compare --gate --allow none.json b.json h.json --markdown none.md
check "a rule for no case says so" 1 'until 2999-12-31, but no$'
grep -q 'no case has such a key: the new index' none.md
result "... in the Markdown too" $?
echo '[{"cases":"*","metric":"time","limit":"0.1%","reason":"hot"}]' >tight.json
echo "a - $(ten 101) $mem" | results h.json
run "$mew" compare --gate --allow tight.json b.json h.json
check "an allow rule tightens too" 1 'slower'
echo '[{"cases":"a","metric":"allocs","limit":"1"}]' >bad.json
run "$mew" compare --gate --allow bad.json b.json h.json
complains "a rule without a reason is refused" 2 'no reason'
echo '[{"cases":"a","metric":"allocs","limit":"1","reason":"x","expire":"2999-12-31"}]' >bad.json
run "$mew" compare --gate --allow bad.json b.json h.json
complains "a misspelt member is refused" 2 'nothing else'
echo '[{"cases":"a","metric":"allocs","limit":"any","reason":"x"}]' >bad.json
run "$mew" compare --gate --allow bad.json b.json h.json
complains "a rule without a limit is refused" 2 'limit'
echo '{}' >bad.json
run "$mew" compare --gate --allow bad.json b.json h.json
complains "what is no list is refused" 2 'not a list'
run "$mew" compare --gate --allow absent.json b.json h.json
complains "rules that are not there" 2 'absent.json'

# --- a history

echo "a - $(ten 120) 7 100 200 100" | results third.json
run "$mew" compare b.json h.json third.json --json -
check "a history has a comparison for each file" 0 '"third.json"'
run "$mew" compare b.json h.json third.json
check "... and a row for each file" 0 '^ *3 .*119\.9.* 1\.200.* 7'
run "$mew" compare --gate b.json h.json third.json
complains "... and no gate" 2 'two files, not 3'

# --- the page, and damaged results

run "$mew" compare b.json h.json --html page.html
check "a page of both" 0 'time' 'wrote page.html'
grep -qi '<html' page.html
result "... is one" $?
run "$mew" compare b.json h.json third.json --html page.html
complains "... of two files" 2 'two files, not 3'
sed 's/"real_ns":\[[0-9]*/"real_ns":[-5/' h.json >negative.json
run "$mew" compare --gate b.json negative.json
complains "a negative time is refused" 2 'negative.json.*real_ns'
sed 's/"real_ns":\[[0-9]*/"real_ns":[NaN/' h.json >nan.json
run "$mew" compare --gate b.json nan.json
complains "a time that is no number is refused" 2 'nan.json'
sed 's/"real_ns":\[[0-9]*,[0-9]*,[0-9]*/"real_ns":[0,0,0/g' h.json >zero.json
run "$mew" compare --gate b.json zero.json
check "no time at all is invalid" 4 'not a finite number above 0'
sed 's/"schema":1/"schema":99/' h.json >newer.json
run "$mew" compare --gate b.json newer.json
complains "a file of a newer mew is refused" 2 'newer.json'

# --- wrong usage

run "$mew" compare b.json
complains "one file" 2 'two or more files'
run "$mew" compare b.json absent.json
complains "a file that is not there" 2 'absent.json'
echo '{' >cut.json
run "$mew" compare b.json cut.json
complains "a file that is cut" 2 'cut.json'
run "$mew" compare --limit speed=1 b.json h.json
complains "an unknown metric" 2 'no metric "speed"'
run "$mew" compare --limit time=1 b.json h.json
complains "a margin without percent" 2 'percent'
run "$mew" compare --limit allocs b.json h.json
complains "a limit without a value" 2 'allocs'
run "$mew" compare --rule luck b.json h.json
complains "an unknown rule" 2 'signs or bootstrap'
run "$mew" compare --seed x b.json h.json
complains "a seed that is no number" 2 'whole number'
run "$mew" compare -F nothing b.json h.json
check "nothing selected" 4 '' 'nothing was compared'
run "$mew" compare --csv /nonexistent/c.csv b.json h.json
check "a file that cannot be written" 2 '' '/nonexistent'
run "$mew" compare --help
check "--help lists the flags and codes" 0 '--least-difference'
sed -n 's/^  \(--[a-z-]*\).*/\1/p' out | while read -r flag; do
	grep -q -- "^\.It Fl ${flag#-}\( \|$\)" "$golden/../../man/mew.1" || echo "$flag" >>undocumented
done
[ ! -e undocumented ]
result "every flag is in the manual" $?

finish
