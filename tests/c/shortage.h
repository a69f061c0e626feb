/*
 * shortage.h - memory that runs out where a test says: see shortage.c.
 */
#ifndef SHORTAGE_H
#define SHORTAGE_H

/* Between the two, of the allocations that count those with the numbers first to last fail, from 1. */
void shortage_begin(long first, long last);
void shortage_end(void);

long shortage_failed(void); /* how many failed between them */

/* From now on, allocations of the Python interpreter for calls out of the extension count as well. */
void shortage_python(void);

#endif
