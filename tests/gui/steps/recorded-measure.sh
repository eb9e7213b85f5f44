# In the form of `fuseline measure --format lines`: the numbers of llama2-7b, forward, 2,048 tokens, in
# scenarios/measurements/h200-fuseline. The window takes it for a run of its own. The arguments are not
# looked at.
cat "$(dirname "$0")/recorded-measure.lines"
