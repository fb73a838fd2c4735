#!/bin/sh
# check_exports.sh - the public names are one list: MEW_API in the headers = the symbol map = the dynamic
# symbols = mew(3); and the names that the hooks put in front are a known list.
set -u
cd "${srcdir-.}" || exit 99
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

same() { # NAME A B
	number=$((number + 1))
	if difference=$(diff "$2" "$3"); then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		echo "$difference" | sed 's/^/# /'
		failed=1
	fi
}

# a declaration may go over two lines
cat include/mew.h include/mew/span.h include/mew/trace.h | tr '\n' ' ' | grep -oE 'MEW_API [^;{]*;' | grep -oE 'mew_[a-z_]+ *\(' | tr -d ' (' |
	{ cat; grep -ohE '^extern MEW_API .*;' include/mew/*.h | grep -oE 'mew_[a-z_]+'; } | sort -u >"$work/header.all"
grep -oE '^\s+mew_[a-z_]+;' src/libmew.map | tr -d '\t ;' | sort -u >"$work/map"
# names inside parameter lists are types and never in the map
grep -vxE 'mew_(run|setup|expect)_fn' "$work/header.all" >"$work/header"
same "the header and the symbol map" "$work/header" "$work/map"
library=${builddir-.}/.libs/libmew.so
if [ -e "$library" ]; then
	nm -D --defined-only "$library" | awk '$2 ~ /[TBD]/ { sub(/@.*/, "", $3); print $3 }' | sort -u >"$work/dynamic"
	same "the symbol map and the library" "$work/map" "$work/dynamic"
fi
grep -vE '_$' "$work/map" >"$work/named"
while read -r name; do
	grep -qE "$name|$(echo "$name" | sed 's/_with$//')" man/mew.3 && echo "$name"
done <"$work/named" >"$work/documented"
same "the symbol map and mew(3)" "$work/named" "$work/documented"
# whatever else the hooks exported would stand in front of everybody's function of that name
cat >"$work/hooks" <<'EOF'
aligned_alloc
calloc
cfree
dlclose
dlopen
free
free_aligned_sized
free_sized
malloc
malloc_usable_size
memalign
mew_hooks_api
mew_pool_watch_v1_
mew_threads_api
mmap
mmap64
mremap
munmap
posix_memalign
pthread_create
pvalloc
realloc
reallocarray
thrd_create
valloc
EOF
printf '%s\n' dlclose dlopen mew_threads_api pthread_create thrd_create >"$work/threads"
for name in hooks threads; do
	library=${builddir-.}/.libs/libmew_$name.so
	[ -e "$library" ] || continue
	nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort -u >"$work/dynamic"
	same "libmew_$name puts these names in front and no others" "$work/$name" "$work/dynamic"
	# room for thread-local variables is small where a library is loaded late, and malloc may not be asked for more
	size=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
	echo "$((${size:-0} <= 256))" >"$work/small"
	echo 1 >"$work/one"
	same "thread-local variables of libmew_$name: 256 bytes at most" "$work/one" "$work/small"
done
echo "1..$number"
exit $failed
