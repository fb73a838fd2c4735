#!/bin/sh
# autogen.sh - make ./configure from a checkout; needs autoconf, automake, libtool and pkg-config.
set -eu
cd "$(dirname "$0")"
mkdir -p m4
exec autoreconf --install --force
