#!/bin/sh
# check_layers.sh - a file includes headers of its own layer or a lower one. The layer stands in each file's first comment.
set -u
cd "${srcdir-.}" || exit 99
files=$(find src backends reports symbols tools include/mew -name '*.[ch]' ! -path 'backends/hooks/*' | sort)
# shellcheck disable=SC2086 # file names without blanks
bad=$(awk '
	FNR == 1 { layer = ""; n++ ; file[n] = FILENAME }
	layer == "" && match($0, /Layer L[0-9]/) { layer = substr($0, RSTART + 7, 1); of[FILENAME] = layer }
	/^#include "/ { split($0, q, "\""); inc[FILENAME] = inc[FILENAME] " " q[2] }
	END {
		for (i = 1; i <= n; i++) {
			f = file[i]
			if (!(f in of)) { print f ": its first comment names no layer"; continue }
			base = f; sub(/.*\//, "", base); of_base[base] = of[f]; of_base["mew/" base] = of[f]
		}
		for (f in inc) {
			m = split(inc[f], h, " ")
			for (k = 1; k <= m; k++) {
				b = h[k]; sub(/^\.\.\/backends\//, "", b)
				if (b in of_base && of_base[b] > of[f])
					print f " (L" of[f] ") includes " h[k] " (L" of_base[b] ")"
			}
		}
	}' $files)
if [ -n "$bad" ]; then
	echo "not ok 1 - layers"
	echo "$bad" | sort | sed 's/^/# /'
	echo "1..1"
	exit 1
fi
echo "ok 1 - layers"
echo "1..1"
