# What `fuseline measure --format lines` printed once on an H200: the window takes it for a run of
# its own. The arguments are not looked at.
cat "$(dirname "$0")/recorded-measure.lines"
