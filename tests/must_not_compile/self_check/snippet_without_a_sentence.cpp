// It is not said what is expected, which the check has to notice.
#ifdef TWIN
#endif
