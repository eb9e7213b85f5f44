// Linked before the harness and once more behind it, each time in another size. So the harness's
// variables lie at another distance from the check's code, from the student's variables and from
// the ends of the program's memory in every check. Nothing reads it, hence `used`; it is static so
// that no name leads to it.
static char padding[FUSELINE_LAB_PADDING] __attribute__((used));
