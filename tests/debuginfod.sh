#!/bin/sh
# debuginfod.sh - --debuginfod: names from a server of debug information on this machine, and what servers do wrong.
# Prints TAP. Nothing but 127.0.0.1 is asked, and the cache of downloads is in the scratch folder.
set -u
# shellcheck disable=SC2154 # make sets them
here=$(cd "$srcdir/tests" && pwd) || exit 99
root=$(cd "$srcdir" && pwd) || exit 99
# shellcheck disable=SC2154 # make sets it
mew=$builddir/mew
: "${CC:=cc}"
# shellcheck source=tests/tap.sh
. "$here/tap.sh"

for tool in python3 objcopy readelf $CC; do
	command -v "$tool" >/dev/null 2>&1 || { echo "1..0 # SKIP $tool is not installed"; exit 0; }
done
[ -e "$builddir/.libs/libmew_symbols.so" ] || { echo "1..0 # SKIP built without libdw: no libmew_symbols.so"; exit 0; }
[ -e "$builddir/.libs/libmew_record.so" ] || { echo "1..0 # SKIP a sanitizer's build has no libmew_record.so"; exit 0; }
python3 -c 'import ctypes; ctypes.CDLL("libdebuginfod.so.1")' 2>/dev/null || {
	echo "1..0 # SKIP libdebuginfod.so.1 is not installed (libdebuginfod1)"
	exit 0
}

# --- what is measured: a program and a library whose debug information is on the server alone

cat >fx_lib.c <<'END'
#include <stdlib.h>
void *fx_library(void);
static __attribute__((noinline)) void *fx_in_library(void) { void *p = malloc(40001); __asm__ volatile("" : : "r"(p)); return p; }
void *fx_library(void) { void *p = fx_in_library(); __asm__ volatile("" : : "r"(p)); return p; }
END
cat >fx_main.c <<'END'
#include <stdlib.h>
void *fx_library(void);
static __attribute__((noinline)) void *fx_in_program(void) { void *p = malloc(50001); __asm__ volatile("" : : "r"(p)); return p; }
int main(void) { free(fx_in_program()); free(fx_library()); return 0; }
END
cat >fx_bench.c <<'END'
#include <stdlib.h>
#include "mew.h"
static __attribute__((noinline)) void *fx_in_bench(void) { void *p = malloc(60001); __asm__ volatile("" : : "r"(p)); return p; }
MEW_BENCHMARK(one) { MEW_LOOP(st) { free(fx_in_bench()); } }
MEW_MAIN()
END
common="-g -O1 -Wl,--build-id"
# shellcheck disable=SC2086 # the compiler and its flags are lists
if ! { $CC $common -fPIC -shared -o libfx.so fx_lib.c && $CC $common -o prog fx_main.c ./libfx.so &&
	$CC $common -I"$root/include" -o bench fx_bench.c -L"$builddir/.libs" -lmew -Wl,-rpath,"$builddir/.libs"; } >log 2>&1; then
	echo "1..0 # SKIP the fixtures do not build here: $(head -n 1 log)"
	exit 0
fi

publish() { # FILE TREE: its debug information into the tree that is served, and out of the file
	id=$(readelf -n "$1" | awk '/Build ID/ { print $3 }')
	mkdir -p "$2/buildid/$id"
	objcopy --only-keep-debug "$1" "$2/buildid/$id/debuginfo" && strip "$1"
}
publish libfx.so served/ok
publish prog served/ok
publish bench served/ok
program_id=$(readelf -n prog | awk '/Build ID/ { print $3 }')
library_id=$(readelf -n libfx.so | awk '/Build ID/ { print $3 }')
mkdir -p served/wrong/buildid/"$program_id" served/text/buildid/"$program_id" served/empty
cp served/ok/buildid/"$library_id"/debuginfo served/wrong/buildid/"$program_id"/debuginfo
echo "<html>not here</html>" >served/text/buildid/"$program_id"/debuginfo

# serves a folder, answers nothing below /hang, writes a line a request into `requests`, and its port into `port`
cat >server.py <<'END'
import http.server, os, time
log = open("requests", "a", buffering=1)
class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *a):
        super().__init__(*a, directory="served")
    def do_GET(self):
        log.write(self.path + "\n")
        if self.path.startswith("/hang/"):
            time.sleep(3600)
        super().do_GET()
    def log_message(self, *a):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open("port.tmp", "w") as f:
    f.write(str(server.server_address[1]))
os.rename("port.tmp", "port")
server.serve_forever()
END
python3 server.py >server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
while [ ! -e port ] && kill -0 $server 2>/dev/null; do sleep 0.1; done
if [ ! -e port ]; then
	echo "1..0 # SKIP no server on 127.0.0.1: $(tail -n 1 server.log)"
	exit 0
fi
site=http://127.0.0.1:$(cat port)
touch requests
unset DEBUGINFOD_VERBOSE DEBUGINFOD_PROGRESS DEBUGINFOD_MAXTIME DEBUGINFOD_TIMEOUT DEBUGINFOD_MAXSIZE http_proxy HTTP_PROXY all_proxy ALL_PROXY

record() { # TREES SECONDS CACHE: --debuginfod over a fresh recording
	urls=
	for tree in $1; do urls="$urls $site/$tree"; done
	DEBUGINFOD_CACHE_PATH=$work/$3 DEBUGINFOD_URLS=$urls \
		run timeout 120 "$mew" record --memory -q "--debuginfod=$2" --json out.json -- ./prog
}

named() { # FUNCTION FILE: the saved result knows it with its file
	python3 - "$1" "$2" out.json <<'END'
import json, sys
functions = json.load(open(sys.argv[3]))["functions"]
sys.exit(not any(f["name"] == sys.argv[1] and f["file"].endswith("/" + sys.argv[2]) for f in functions))
END
}

says() { # NAME PATTERN...: the tables went well, and each pattern stands in one line of standard error
	name=$1
	status=0
	shift
	[ "$code" = 0 ] || status=1
	for pattern in "$@"; do
		[ "$(grep -c -- "$pattern" err)" = 1 ] || status=1
	done
	result "$name" $status "wanted one line each: $*"
}

# --- off unless asked for

DEBUGINFOD_CACHE_PATH=$work/c0 DEBUGINFOD_URLS=$site/ok run "$mew" record --memory -q --json out.json -- ./prog
status=$code
[ ! -s requests ] && ! named fx_in_program fx_main.c || status=1
result "without the flag no server is asked" $status "requests: $(cat requests)"
cp out.json saved.json

unset DEBUGINFOD_URLS
run "$mew" record --debuginfod -- ./prog
complains "no DEBUGINFOD_URLS: a sentence" 2 "DEBUGINFOD_URLS names no server: set it"
run "$mew" run --debuginfod ./bench
complains "mew run says the same before it measures" 2 "DEBUGINFOD_URLS names no server"
run "$mew" report --debuginfod saved.json
complains "and so does mew report" 2 "DEBUGINFOD_URLS names no server"
mkdir broken
echo "no library" >broken/libdebuginfod.so.1
LD_LIBRARY_PATH=$work/broken DEBUGINFOD_URLS=$site/ok run "$mew" record --debuginfod -- ./prog
complains "no libdebuginfod: the package to install" 2 "install the package libdebuginfod1"
DEBUGINFOD_URLS=$site/ok run "$mew" record --debuginfod=0 -- ./prog
complains "a limit of no time is refused" 2 "1 or more"

# --- what a server has

record ok 60 c1
says "a line for each download: module, bytes, server" \
	"debuginfod: prog: [0-9]* bytes of debug information from $site/ok\$" \
	"debuginfod: libfx.so: [0-9]* bytes of debug information from $site/ok\$"
named fx_in_program fx_main.c && named fx_in_library fx_lib.c
result "names and files of the program and its library" $?
cp requests before
record ok 60 c1
says "a second time they come out of the cache" "prog: [0-9]* bytes of debug information are here from an earlier download\$"
cmp -s before requests && named fx_in_program fx_main.c
result "without a request" $?

DEBUGINFOD_CACHE_PATH=$work/c2 DEBUGINFOD_URLS=$site/ok run "$mew" run --memory --debuginfod=60 --json out.json ./bench
says "mew run" "debuginfod: bench: [0-9]* bytes of debug information from $site/ok\$"
named fx_in_bench fx_bench.c
result "names the functions of a stripped benchmark" $?

mv prog gone
DEBUGINFOD_CACHE_PATH=$work/c3 DEBUGINFOD_URLS=$site/ok run "$mew" report --debuginfod=60 --json out.json saved.json
says "mew report names a saved result" "debuginfod: prog: [0-9]* bytes of debug information from $site/ok\$"
named fx_in_program fx_main.c && named fx_in_library fx_lib.c
result "also of a program that is gone" $?
mv gone prog

# --- what servers do wrong

record empty 60 c4
says "a server that has nothing" "debuginfod: prog: no server has its debug information\$"
! named fx_in_program fx_main.c
result "then names stay unknown" $?
record wrong 60 c5
says "a file of another build is not used" "debuginfod: prog: a file of another build, which was not used, came from $site/wrong\$"
! named fx_in_program fx_main.c
result "and gives no names" $?
record text 60 c6
says "a page instead of a file is not used" "debuginfod: prog: no ELF file came from $site/text\$"
record "empty ok" 60 c7
says "the server that has it is the one named" "debuginfod: prog: [0-9]* bytes of debug information from $site/ok\$"
: >requests
record hang 1 c8
says "a server that hangs ends at the limit" "debuginfod: prog: no debug information within the time limit\$" \
	"debuginfod: libfx.so: no debug information within the time limit\$"
[ "$(grep -c . requests)" = 1 ]
result "which all files share" $? "requests: $(cat requests)"
status=0
[ -z "$(find c? -name '*.??????' -size +0 2>/dev/null)" ] || status=1
result "and no half of a file stays in the cache" $status "$(find c?)"
kill $server
wait $server 2>/dev/null
record ok 60 c9
says "nobody answers" "debuginfod: prog: its debug information was not downloaded: "
finish
