#!/bin/sh
# row_readers.sh - the formats of other tools, read by those tools; prints TAP. Skips each reader that is not installed.
#
#   builddir      where mew is; default "."
#   COMPARE_PY    Google Benchmark's compare.py; default: of Debian's libbenchmark-tools (needs scipy)
#   OTLP_PROTOS   folder that holds opentelemetry/proto/; default: what npm install --prefix tests/row_readers brings
#   PYTHON        default: /usr/bin/python3, else the path's; needs google.protobuf for OTLP
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 99
builddir=${builddir:-.}
mew=$(cd "$builddir" && pwd)/mew
[ -x "$mew" ] || { echo "1..0 # SKIP mew is not built"; exit 0; }
if [ -z "${PYTHON:-}" ]; then
	PYTHON=/usr/bin/python3
	[ -x $PYTHON ] || PYTHON=python3
fi
COMPARE_PY=${COMPARE_PY:-/usr/share/benchmark/compare.py}
OTLP_PROTOS=${OTLP_PROTOS:-$here/row_readers/node_modules/@opentelemetry/otlp-grpc-exporter-base/build/protos}
work=$(mktemp -d "${TMPDIR:-/tmp}/mew-row-readers.XXXXXX") || exit 99
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 99
number=0
failed=0

result() { # NAME STATUS
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed 's/^/# /' log | tail -n 20
		failed=1
	fi
}

skip() { # NAME REASON
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}

# a result whose names try to break out of every format, beside the one of the golden files
cat >hostile.mew.json <<'END'
{ "schema": 1, "mew": "0", "environment": { "a|b": "<b>`\\|`</b>" },
  "cases": [
    { "key": "</script><img src=x onerror=alert(1)>|`a\\|b`\"'\u0001\u202e@team", "label": "**x** | y", "threads": 1, "bytes_per_iteration": 0, "items_per_iteration": 0,
      "counters": { "real_time": 3, "|": -0.0 },
      "time": { "status": "MEW_OK", "reason": "see <b>@team</b> | `x`", "median_ns": 12.5, "absent": {} } },
    { "key": "failed|<i>", "threads": 2, "bytes_per_iteration": 0, "items_per_iteration": 0,
      "time": { "status": "MEW_E_BODY", "reason": "<img src=x> | `|` \\| https://example.org", "absent": {} } },
    { "key": " ` ", "threads": 1, "bytes_per_iteration": 0, "items_per_iteration": 0,
      "time": { "status": "MEW_OK", "median_ns": 0, "absent": {} },
      "memory": { "status": "MEW_OK", "peak_bytes": "18446744073709551615", "absent": {} } } ] }
END
cp "$here/golden/results.mew.json" codec.mew.json
: >log
for name in codec hostile; do
	"$mew" report $name.mew.json -q --gbench $name.gbench.json --otlp $name.otlp.json --markdown $name.md >log 2>&1 || {
		result "mew writes $name" 1
		echo "1..$number"
		exit 1
	}
done

# --- compare.py
if [ ! -r "$COMPARE_PY" ]; then
	skip "compare.py reads its files" "libbenchmark-tools is not installed"
elif ! "$PYTHON" -c 'import scipy' 2>/dev/null; then
	skip "compare.py reads its files" "python3-scipy is not installed"
else
	for name in codec hostile; do
		status=0
		"$PYTHON" "$COMPARE_PY" --no-color -d diff.json benchmarks $name.gbench.json $name.gbench.json >log 2>&1 || status=1
		grep -q Traceback log && status=1
		grep -qi '[^a-z]nan[^a-z]' log && status=1
		result "compare.py compares $name with itself" $status
	done
	status=0
	"$PYTHON" "$COMPARE_PY" --no-color benchmarks codec.gbench.json codec.gbench.json >log 2>&1 || status=1
	[ "$(grep -c '^zlib/inflate/case:0 ' log)" = 2 ] || status=1
	grep -q '^zlib/inflate/case:0_pvalue ' log || status=1
	result "... row by row, with a test of the repetitions" $status
	status=0
	sed 's/"cpu_time"/"other_time"/' codec.gbench.json >broken.json
	"$PYTHON" "$COMPARE_PY" --no-color benchmarks broken.json broken.json >log 2>&1 && status=1
	result "... and refuses a row without CPU time, so that this means something" $status
fi

# --- the protobuf JSON parser
if [ ! -d "$OTLP_PROTOS/opentelemetry" ]; then
	skip "the protobuf parser takes OTLP" "no .proto files: npm install --ignore-scripts --prefix tests/row_readers"
elif ! command -v protoc >/dev/null 2>&1; then
	skip "the protobuf parser takes OTLP" "protobuf-compiler is not installed"
elif ! "$PYTHON" -c 'import google.protobuf' 2>/dev/null; then
	skip "the protobuf parser takes OTLP" "python3-protobuf is not installed"
else
	mkdir py
	# shellcheck disable=SC2046 # names without blanks
	(cd "$OTLP_PROTOS" && protoc --python_out="$work/py" $(find opentelemetry -name '*.proto')) >log 2>&1
	cat >otlp.py <<'END'
import sys
sys.path.insert(0, "py")
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
request = service.ExportMetricsServiceRequest()
json_format.Parse(open(sys.argv[1], encoding="utf-8").read(), request)
points = 0
for metric in request.resource_metrics[0].scope_metrics[0].metrics:
    kind = metric.WhichOneof("data")
    for point in getattr(metric, kind).data_points:
        points += 1
        if kind == "histogram":
            assert len(point.bucket_counts) == len(point.explicit_bounds) + 1, metric.name
            assert sum(point.bucket_counts) == point.count, metric.name
        else:
            assert point.WhichOneof("value") is not None, metric.name
        assert any(a.key == "mew.case" for a in point.attributes), metric.name
    assert kind == "gauge" or getattr(metric, kind).aggregation_temporality == 1, metric.name
assert points >= int(sys.argv[2]), points
END
	status=0
	"$PYTHON" otlp.py codec.otlp.json 100 >log 2>&1 || status=1
	result "the protobuf parser takes OTLP" $status
	status=0
	"$PYTHON" otlp.py hostile.otlp.json 3 >log 2>&1 || status=1
	result "... of hostile names" $status
	status=0
	sed 's/"asInt":"/"asint":"/' codec.otlp.json >broken.json
	"$PYTHON" otlp.py broken.json 100 >log 2>&1 && status=1
	result "... and refuses a name it does not know, so that this means something" $status
fi

# --- a Markdown renderer
if ! command -v cmark-gfm >/dev/null 2>&1; then
	skip "cmark-gfm renders the tables" "cmark-gfm is not installed"
else
	status=0
	cmark-gfm -e table -e autolink -e strikethrough --unsafe codec.md >log 2>&1 || status=1
	[ "$(grep -c '<table>' log)" = 6 ] || status=1
	grep -q '<td[^>]*><code>zlib/inflate \[1k\]</code></td>' log || status=1
	result "cmark-gfm renders the tables" $status
	status=0
	cmark-gfm -e table -e autolink -e strikethrough --unsafe hostile.md >log 2>&1 || status=1
	grep -Eq '<(img|script|b|i|strong|em|del)[ >]' log && status=1
	grep -q '<td[^>]*><code>failed|&lt;i&gt;</code></td>' log || status=1
	grep -q '|`a\\|b`&quot;' log || status=1
	result "... and takes nothing in a name for markup" $status
fi

echo "1..$number"
exit $failed
