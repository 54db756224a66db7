// There is no twin, which the check has to notice.
// expect: a sentence
