/* The same declarations through the eyes of a C++ compiler. */
#include "layout.c"
