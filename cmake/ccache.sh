#!/bin/sh
# ccache for this project: cmake/ccache.sh CCACHE COMPILER [ARGUMENTS...]
#
# Without the words of CCACHE_SLOPPINESS ccache keeps nothing that uses a precompiled header. With
# CCACHE_PCH_EXTSUM it does not take those of two folders for different ones (fuseline_precompile).
#
# A precompiled header of an earlier build is removed before it is made again. GCC's preprocessor
# would otherwise read the old one in place of the headers, so ccache would not see that a header
# changed, and would give the precompiled header of another state of the sources.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1
before=
for argument in "$@"; do
  if [ "$before" = -o ]; then
    case "$argument" in
      *.gch | *.pch) rm -f "$argument" ;;
    esac
  fi
  before="$argument"
done
exec "$@"
